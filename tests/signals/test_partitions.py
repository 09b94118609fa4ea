"""Offsets by partition, and how many rows an offset is."""

import pytest

from ledgerops.signals.partitions import backlog_by_partition
from ledgerops.signals.rates import rows_per_offset
from tests.build import batch, source


@pytest.mark.parametrize("slower", [0, 1])
def test_of_two_readers_of_one_topic_the_slower_ones_backlog_counts(slower):
    one, two = ("t", "0"), ("t", "1")
    ends = [{one: 900, two: 40}, {one: 900, two: 40}]
    ends[slower] = {one: 100, two: 40}
    both = batch(sources=tuple(source(end=end, latest={one: 1000, two: 40}) for end in ends))
    assert backlog_by_partition(both) == {one: 900, two: 0}


def test_backlog_is_never_negative_when_the_head_was_read_before_the_end():
    behind = batch(sources=(source(10, {("t", "0"): 0}, {("t", "0"): 10}, {("t", "0"): 8}),))
    assert backlog_by_partition(behind) == {("t", "0"): 0}


def test_offsets_are_turned_into_rows_by_what_was_read():
    seen = [batch(sources=(source(500, {("f", "0"): 1}, {("f", "0"): 2}, name="files"),))]
    assert rows_per_offset(seen) == {"files": 500.0}
