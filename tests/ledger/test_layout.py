"""Records and places correspond one to one, whatever is pinned or idle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerops.ledger.layout import Layout, Partitions


@st.composite
def layouts(draw):
    count = draw(st.integers(1, 8))
    idle = draw(st.sets(st.integers(0, count - 1), max_size=count - 1))
    busy = [p for p in range(count) if p not in idle]
    if not draw(st.booleans()):
        return Layout(Partitions(count, tuple(idle)))
    share = draw(st.floats(0, 1)) if len(busy) > 1 else 1.0
    return Layout(Partitions(count, tuple(idle), draw(st.sampled_from(busy)), share))


@settings(deadline=None)
@given(layouts(), st.integers(0, 10**9))
def test_a_record_comes_back_from_its_place(layout, first):
    records = np.arange(first, first + 200)

    partitions, offsets = layout.places(records)

    for record, partition, offset in zip(records, partitions, offsets, strict=True):
        assert layout.records(int(partition), np.array([offset]))[0] == record


@settings(deadline=None)
@given(layouts(), st.integers(0, 3000))
def test_heads_count_the_records_of_each_partition(layout, count):
    partitions, offsets = layout.places(np.arange(count))

    assert layout.heads(count) == np.bincount(partitions, minlength=layout.count).tolist()
    for p in range(layout.count):
        assert offsets[partitions == p].tolist() == list(range(layout.heads(count)[p]))


@pytest.mark.parametrize(
    ("partitions", "heads"),
    [
        pytest.param(Partitions(5), [200, 200, 200, 200, 200], id="even"),
        pytest.param(Partitions(5, idle=(1, 3)), [334, 0, 333, 0, 333], id="idle ones get nothing"),
        pytest.param(Partitions(5, pinned=2, share=0.8), [50, 50, 800, 50, 50], id="most of it pinned"),
        pytest.param(Partitions(5, pinned=2, share=1.0), [0, 0, 1000, 0, 0], id="all of it pinned"),
        pytest.param(
            Partitions(5, pinned=2, share=0.0), [200, 200, 200, 200, 200], id="a share of nothing pins nothing"
        ),
        pytest.param(Partitions(1), [1000], id="one partition"),
    ],
)
def test_where_a_thousand_records_go(partitions, heads):
    assert Layout(partitions).heads(1000) == heads
