"""The place of a finding as people would say it."""

import pytest

from ledgerops.diagnosis.place import place


@pytest.mark.parametrize(
    ("kind", "name", "detail", "said"),
    [
        ("query", "orders", "checkpoint", ""),
        ("source", "orders", None, "source orders"),
        ("source", "orders", "maxOffsetsPerTrigger", "source orders, maxOffsetsPerTrigger"),
        ("partition", "t123-3", "t123", "partition 3 of t123"),
        ("partition", "t123-3", None, "partition t123-3"),
        ("stage", "start at NativeMethodAccessorImpl.java:0", "task 1", "task 1 of a stage"),
        ("stage", "start at NativeMethodAccessorImpl.java:0", None, "a stage"),
        ("stage", "start", None, "a stage"),
        ("stage", "count at orders.py:12", None, "stage count"),
        ("stage", "shuffle", None, "the shuffle"),
        ("stage", "shuffle by customer_id", "customer_id", "the shuffle by customer_id"),
        ("stage", "Python workers", None, "the Python workers"),
        ("executor", "all", "heap", "all executors, heap"),
        ("executor", "3", None, "executor 3"),
        ("executor", "lost executors", "2 on a: killed", "lost executors, 2 on a: killed"),
        ("host", "the driver's machine", "other processes", "the driver's machine, other processes"),
        ("input", "one input of the query", "no rows", "one input of the query, no rows"),
        ("sink", "ForeachBatchSink", None, "sink foreachBatch"),
        ("operator", "dedupe", None, "operator dedupe"),
        ("operator", "de\x1bdupe", "a\nb", "operator de?dupe, a?b"),
    ],
)  # fmt: skip
def test_a_place_is_said_in_words(kind, name, detail, said):
    assert place({"kind": kind, "name": name, "detail": detail}) == said
