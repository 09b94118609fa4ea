"""What sources and sinks report of themselves, as families."""

import pytest

from ledgerops.metrics.connectors import MAX_VALUES, SINK_VALUE, SOURCE_VALUE
from ledgerops.metrics.pressure import LAG, QUERY_LAG
from ledgerops.metrics.tables import UNREAD_BYTES, UNREAD_FILES, UNREAD_ROWS
from ledgerops.model.spark_progress import parse_progress
from ledgerops.signals.query_view import QueryView
from tests.build import T0, history, spark_json
from tests.tables import cases

AUTO_LOADER = {"seqNum": 9, "sourceVersion": 1, "lastBackfillStartTimeMs": 5, "lastBackfillFinishTimeMs": 6}
PUB_SUB = {"sourceVersion": 1, "seqNum": 5, "fetchEpoch": 2}


def view(description="x", end=5, metrics=None, **changes):
    """A query whose newest batch began at T0, took 0.9 s and read one source."""
    source = {"description": description, "endOffset": end, "numInputRows": 20, "metrics": metrics or {}}
    return QueryView(history([parse_progress(spark_json(sources=[source], **changes))]), T0 + 10)


@cases(
    "description, end, metrics, rows, files, size",
    ("files and bytes", "CloudFilesSource[/in]", AUTO_LOADER,
     {"numFilesOutstanding": "238", "numBytesOutstanding": "1048576"}, {}, {("CloudFilesSource",): 238.0},
     {("CloudFilesSource",): 1048576.0}),
    ("rows and bytes", "PubSub", PUB_SUB, {"numRecordsReadyToProcess": "7", "sizeOfRecordsReadyToProcess": "56"},
     {("PubSub",): 7.0}, {}, {("PubSub",): 56.0}),
    ("nothing", "DeltaSource[t]", {"reservoirVersion": 4, "index": -1}, {}, {}, {}, {}),
)  # fmt: skip
def test_what_the_source_reports_as_unread_is_exported(description, end, metrics, rows, files, size):
    seen = view(description, end, metrics)
    assert [metric.read(seen) for metric in (UNREAD_ROWS, UNREAD_FILES, UNREAD_BYTES)] == [rows, files, size]
    assert LAG.read(seen) == QUERY_LAG.read(seen) == {}


@cases(
    "behind, since",
    ("behind: counted from the end of the batch", "33500", T0 + 0.9 - 33.5),
    ("nothing is left", "0", float("inf")),
)
def test_a_lag_that_the_source_reports_in_seconds_grows_until_its_next_report(behind, since):
    seen = view("KinesisV2[orders]", [], {"maxMsBehindLatest": behind})
    assert LAG.age and QUERY_LAG.age
    assert LAG.read(seen) == {("KinesisV2", "0"): pytest.approx(since)}
    assert QUERY_LAG.read(seen) == {(): pytest.approx(since)}


KINESIS = {"maxMsBehindLatest": "0", "numAwsRateLimitErrors": "12", "mode": "Polling"}
KAFKA = {"minOffsetsBehindLatest": "0", "maxOffsetsBehindLatest": "4", "avgOffsetsBehindLatest": "1.5"}


def test_the_other_numbers_of_a_source_are_exported_by_their_names_up_to_a_limit():
    kinesis, kafka = view("KinesisV2[orders]", [], KINESIS), view("KafkaV2[Subscribe[t]]", {"t": {"0": 5}}, KAFKA)
    many = view("x", 5, {f"shard-{number}": "1" for number in range(3 * MAX_VALUES)})
    assert SOURCE_VALUE.read(kinesis) == {("KinesisV2", "numAwsRateLimitErrors"): 12.0}
    assert SOURCE_VALUE.read(kafka) == {}, "what Kafka says twice is exported once"
    assert len(SOURCE_VALUE.read(many)) == MAX_VALUES


def test_before_the_first_batch_there_is_nothing():
    seen = QueryView(history([]), T0)
    assert SOURCE_VALUE.read(seen) == SINK_VALUE.read(seen) == UNREAD_FILES.read(seen) == {}


def test_the_numbers_of_a_sink_are_exported():
    sink = {"description": "s", "numOutputRows": -1, "metrics": {"commits": "3", "table": "t", "ratio": "NaN"}}
    assert SINK_VALUE.read(view(sink=sink)) == {("commits",): 3.0}
