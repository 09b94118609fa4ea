"""Families of a query that stand for all of its partitions."""

import pytest

from ledgerops.metrics.pressure import QUERY_HEADROOM
from ledgerops.model.records import Heads
from ledgerops.signals.query_view import QueryView
from tests.build import T0, batch, history, source

KEEPS = 600.0
PARTITIONS = [("transactions", str(number)) for number in range(3)]


def headroom(head):
    """The family after a batch that consumed 100 of each partition, and an answer of the broker 100 s later."""
    ends, starts = dict.fromkeys(PARTITIONS, 100), dict.fromkeys(PARTITIONS, 0)
    remembered = history([batch(0, sources=(source(100, starts, ends, ends),))])
    heads = dict(zip(PARTITIONS, head, strict=True))
    remembered.add_heads(Heads(T0 + 100, heads, starts, {"transactions": KEEPS}))
    return QUERY_HEADROOM.read(QueryView(remembered, T0 + 100))


def test_the_partition_with_the_least_headroom_stands_for_the_query():
    assert headroom([100, 150, 100]) == {(): pytest.approx(KEEPS - 100, abs=2)}
    assert headroom([100, 100, 100]) == {}, "all is read"
