"""Small batches are read by few tasks, large ones by one for each partition; no row is left out or read twice."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerops.ledger.sources.input_partitions import WORTH_A_TASK, Slice, splits


def test_a_small_batch_is_one_task_a_large_one_a_task_for_each_partition_and_none_costs_nothing():
    small = [Slice(p, 100, 700) for p in range(5)]
    large = [Slice(p, 0, WORTH_A_TASK) for p in range(5)]
    assert [split.slices for split in splits(small)] == [tuple(small)]
    assert [split.slices for split in splits(large)] == [(each,) for each in large]
    assert splits([Slice(0, 5, 5), Slice(1, 9, 9)]) == []


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50_000), st.integers(0, 50_000)), max_size=12))
def test_every_slice_is_read_once_and_in_order(ends):
    given_ = [Slice(p, min(pair), max(pair)) for p, pair in enumerate(ends)]
    assert [each for split in splits(given_) for each in split.slices] == [s for s in given_ if s.end > s.start]


def test_a_smaller_worth_gives_each_partition_its_task():
    slices = [Slice(partition, 0, 100) for partition in range(3)]
    assert len(splits(slices)) == 1
    assert [each.slices for each in splits(slices, worth=100)] == [(each,) for each in slices]
