"""Records and places correspond one to one, whatever is pinned or idle."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerops.ledger.plan.partitioning import Layout, Partitions, Places
from tests.tables import cases


@st.composite
def layouts(draw):
    count = draw(st.integers(1, 8))
    idle = draw(st.sets(st.integers(0, count - 1), max_size=count - 1))
    busy = [p for p in range(count) if p not in idle]
    if not draw(st.booleans()):
        return Layout(Partitions(count, tuple(idle)))
    share = draw(st.floats(0, 1)) if len(busy) > 1 else 1.0
    return Layout(Partitions(count, tuple(idle), draw(st.sampled_from(busy)), share))


@cases(
    "partitions, heads",
    ("even", Partitions(5), [200, 200, 200, 200, 200]),
    ("idle ones get nothing", Partitions(5, idle=(1, 3)), [334, 0, 333, 0, 333]),
    ("most of it pinned", Partitions(5, pinned=2, share=0.8), [50, 50, 800, 50, 50]),
    ("all of it pinned", Partitions(5, pinned=2, share=1.0), [0, 0, 1000, 0, 0]),
    ("a share of nothing", Partitions(5, pinned=2, share=0.0), [200, 200, 200, 200, 200]),
    ("one partition", Partitions(1), [1000]),
)
def test_where_a_thousand_records_go(partitions, heads):
    assert Layout(partitions).heads(1000) == heads


@st.composite
def places(draw):
    """One layout alone, or several one after the other."""
    layouts_ = draw(st.lists(layouts(), min_size=1, max_size=5))
    steps = draw(st.lists(st.integers(0, 700), min_size=len(layouts_) - 1, max_size=len(layouts_) - 1))
    return Places([each.partitions for each in layouts_], np.cumsum([0, *steps]))


@settings(deadline=None)
@given(places(), st.integers(0, 3000) | st.integers(0, 10**9))
def test_layouts_one_after_the_other_keep_records_and_places_together(found, first):
    records = np.arange(first, first + 300)
    partitions, offsets = found.places(records)
    for partition in np.unique(partitions).tolist():
        mine = partitions == partition
        assert found.records(partition, offsets[mine]).tolist() == records[mine].tolist()


@settings(deadline=None)
@given(places(), st.integers(0, 3000))
def test_heads_go_on_from_layout_to_layout(found, count):
    partitions, offsets = found.places(np.arange(count))
    assert found.heads(count) == np.bincount(partitions, minlength=found.count).tolist()
    for p in range(found.count):
        assert offsets[partitions == p].tolist() == list(range(found.heads(count)[p]))


def test_a_partition_is_known_from_the_first_record_that_it_could_get():
    found = Places([Partitions(2), Partitions(5), Partitions(3)], np.array([0, 10, 20]))
    assert [found.known(count) for count in (0, 10, 11, 20, 100)] == [2, 2, 5, 5, 5]
    assert found.heads(20) == [7, 7, 2, 2, 2]
    # a layout that holds for no record brings none
    assert Places([Partitions(2), Partitions(5), Partitions(3)], np.array([0, 10, 10])).known(100) == 3
