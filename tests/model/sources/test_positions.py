"""Each documented form of an offset: its kind, what can be subtracted, the place in a table, what is left."""

import json

import pytest

from ledgerops.model.records import NOTHING_REPORTED, Left, TablePosition
from ledgerops.model.sources import NAMED, kind_of, offsets_of
from ledgerops.model.spark_progress import parse_progress
from tests.build import spark_json
from tests.tables import cases

BACKFILL = {"lastBackfillStartTimeMs": 1778863978314, "lastBackfillFinishTimeMs": 1778863980578}
DELTA = {"sourceVersion": 1, "reservoirId": "8b4c0d5e", "reservoirVersion": 42, "index": -1, "isStartingVersion": False}
ICEBERG = {"version": 1, "snapshot_id": 5210823984823094201, "position": 3, "scan_all_files": False}
SEQUENCE = "49652022592149344892294981243280420130985816456924495874"
AWS_SHARD = {
    "iteratorType": "AFTER_SEQUENCE_NUMBER", "iteratorPosition": SEQUENCE, "subSequenceNumber": "-1", "isLast": "true",
}  # fmt: skip
AWS_KINESIS = {"metadata": {"batchId": "7", "streamName": "orders"}, "shardId-000000000000": AWS_SHARD}
CLOUD_FILES = {"seqNum": 9, "sourceVersion": 1, **BACKFILL}
PUB_SUB = {"sourceVersion": 1, "seqNum": 5, "fetchEpoch": 2}
AWS_STREAM = "org.apache.spark.sql.connector.kinesis.KinesisV2MicrobatchStream@1"
CONTAINER = "abfss://c@a.dfs.core.windows.net/in"


def shard(number: int, behind: str = "0", closed: bool = False) -> dict[str, object]:
    """A shard as Databricks' connector reports it."""
    return {
        "shard": {"stream": "orders", "shardId": f"shardId-{number:012}"},
        "firstSeqNum": SEQUENCE, "lastSeqNum": SEQUENCE, "lastRecordSeqNum": SEQUENCE,
        "closed": closed, "msBehindLatest": behind,
    }  # fmt: skip


def progress_of(description, end, metrics=None, latest=None):
    """The one source of a batch that ended at `end`."""
    text = {"description": description, "startOffset": None, "endOffset": end, "latestOffset": latest}
    text |= {"numInputRows": 20, "metrics": metrics or {}}
    [source] = parse_progress(spark_json(sources=[text])).sources
    return source


EVENT_HUBS = "org.apache.spark.sql.eventhubs.EventHubsSource@31d0e481"
ICEBERG_STREAM = "org.apache.iceberg.spark.source.SparkMicroBatchStream@1"


@cases(
    "description, end, kind, offsets",
    ("K", "KafkaV2[Subscribe[t]]", {"t": {"0": 5, "1": 6}}, "kafka", {("t", "0"): 5, ("t", "1"): 6}),
    ("Kafka V1", "KafkaSourceV1[Subscribe[t]]", {"t": {"0": 5}}, "kafka", {("t", "0"): 5}),
    ("Event Hubs", EVENT_HUBS, {"hub": {"0": 5}}, "eventhubs", {("hub", "0"): 5}),
    ("Delta", "DeltaSource[s3://lake/bronze/orders]", DELTA, "delta", {}),
    ("Delta 3", "DeltaSource[file:/t]", DELTA | {"sourceVersion": 3, "index": -20}, "delta", {}),
    ("Iceberg", ICEBERG_STREAM, ICEBERG, "iceberg", {}),
    ("Kinesis, Databricks", "KinesisV2[orders]", [shard(0), shard(1)], "kinesis", {}),
    ("Kinesis without shards", "KinesisV2[orders]", [], "kinesis", {}),
    ("Kinesis, AWS", AWS_STREAM, AWS_KINESIS, "kinesis", {}),
    ("Auto Loader", "CloudFilesSource[/mnt/landing/]", CLOUD_FILES, "autoloader", {}),
    ("Auto Loader with a path", f"CloudFilesSource[{CONTAINER}]",
     {"seqNum": 5, "sourceVersion": 3, **BACKFILL, "lastInputPath": CONTAINER}, "autoloader", {}),
    ("Pub/Sub", "PubSub[sub]", PUB_SUB, "pubsub", {}),
    ("files", "FileStreamSource[f:/in]", {"logOffset": 3}, "files", {("FileStreamSource", "0"): 3}),
    ("rate-micro-batch", "RatePerMicroBatchStream[rowsPerBatch=10]", {"offset": 20, "timestamp": 1667453455118},
     "rate-micro-batch", {("RatePerMicroBatchStream", "0"): 20}),
    ("a bare number", "RateStreamV2[rowsPerSecond=5]", 4, "other", {("RateStreamV2", "0"): 4}),
    ("Python, one field", "ordersReader", {"index": 3}, "other", {("ordersReader", "index"): 3}),
    ("a flat table", "shards", {"0": 5, "1": 6}, "other", {("shards", "0"): 5, ("shards", "1"): 6}),
    ("the embedded source", "ledger", {"customers": {"0": 5}}, "other", {("customers", "0"): 5}),
    ("Kafka without partitions", "KafkaV2[Subscribe[t]]", {}, "kafka", {}),
    ("before the first batch", "KafkaV2[Subscribe[t]]", None, "kafka", {}),
)  # fmt: skip
@pytest.mark.parametrize("dialect", ["listener", "event log"])
def test_every_known_form_is_read_by_its_kind(description, end, kind, offsets, dialect):
    text = end if dialect == "listener" or end is None else json.dumps(end)
    source = progress_of(description, text)
    assert (source.kind, source.end, source.known_form, source.rows) == (kind, offsets, True, 20)


@cases(
    "description, end",
    ("Python, two fields", "changes", {"lsn": 71, "commit_ts": 1667453455118}),
    ("one key that is no number", "changes", {"0": 5, "at": 6}),
    ("text in an object", "changes", {"at": "2026-11-01"}),
    ("text", "changes", "somewhere"),
    ("a list", "changes", [1, 2]),
    ("a truth value", "changes", True),
    ("text where Kafka has a number", "KafkaV2[Subscribe[t]]", {"t": {"0": "5"}}),
    ("Kafka without partitions in a topic", "KafkaV2[Subscribe[t]]", {"t": 5}),
    ("a version that is no number", "DeltaSource[t]", {"reservoirVersion": "42", "index": 1}),
    ("Delta without index", "DeltaSource[t]", {"reservoirVersion": 42}),
    ("Iceberg without id", "x", {"snapshot_id": None, "scan_all_files": True, "position": 0}),
    ("a shard without a sequence number", "KinesisV2[orders]", [{"shard": 1}]),
    ("a file source without entry", "FileStreamSource[file:/in]", {"seqNum": 5}),
    ("rate-micro-batch without offset", "RatePerMicroBatchStream[", {"timestamp": 6}),
)
def test_an_unknown_form_is_said_and_counts_nothing(description, end):
    source = progress_of(description, end, latest=end)
    assert (source.known_form, source.end, source.latest, source.read, source.table) == (False, {}, {}, 0, None)


@cases(
    "offset, kind",
    ("Delta", DELTA, "delta"),
    ("Iceberg", ICEBERG, "iceberg"),
    ("Kinesis, AWS", AWS_KINESIS, "kinesis"),
    ("Kinesis, Databricks", [shard(0)], "kinesis"),
    ("Auto Loader", CLOUD_FILES, "autoloader"),
    ("Pub/Sub", PUB_SUB, "pubsub"),
    ("files", {"logOffset": 3}, "files"),
    ("partitions of anything", {"t": {"0": 5}}, "other"),
    ("a number of anything", 5, "other"),
    ("nothing", None, "other"),
)
def test_without_a_known_description_the_form_of_the_offset_decides(offset, kind):
    assert kind_of("com.example.Stream@1f", offset).name == kind


SNAPSHOT = ICEBERG["snapshot_id"]


@cases(
    "offset, expected",
    ("before a version", DELTA, (42, -1, False)),
    ("within a version", DELTA | {"index": 6}, (42, 6, False)),
    ("a changed schema", DELTA | {"sourceVersion": 3, "index": -19}, (42, -1, False)),
    ("first snapshot", DELTA | {"isStartingVersion": True, "index": 3}, (42, 3, True)),
    ("Iceberg", ICEBERG, (SNAPSHOT, 3, False)),
    ("all files", ICEBERG | {"scan_all_files": True}, (SNAPSHOT, 3, True)),
)
def test_a_place_in_a_table_is_a_version_and_a_file(offset, expected):
    assert progress_of("com.example.Stream@1f", offset).table == TablePosition(*expected)


DELTA_LEFT = {"numBytesOutstanding": "3456", "numFilesOutstanding": "8"}
CLOUD_FILES_LEFT = {"numFilesOutstanding": "238", "numBytesOutstanding": "163939124006", "approximateQueueSize": "0"}
PUB_SUB_LEFT = {"numRecordsReadyToProcess": "1", "sizeOfRecordsReadyToProcess": "8"}
KINESIS_LEFT = {"avgMsBehindLatest": "32000.0", "maxMsBehindLatest": "33500", "totalPrefetchedBytes": "4096"}
KAFKA_LEFT = {"estimatedTotalBytesBehindLatest": "80.5", "maxOffsetsBehindLatest": "4"}
OPEN, CLOSED = shard(1, "250"), shard(0, "90000", closed=True)


@cases(
    "description, end, metrics, expected",
    ("Delta on Databricks", "DeltaSource[t]", DELTA, DELTA_LEFT, Left(files=8, bytes=3456)),
    ("Delta", "DeltaSource[t]", DELTA, {}, NOTHING_REPORTED),
    ("Auto Loader", "CloudFilesSource[t]", CLOUD_FILES, CLOUD_FILES_LEFT, Left(files=238, bytes=163939124006)),
    ("Pub/Sub", "PubSub", PUB_SUB, PUB_SUB_LEFT, Left(rows=1, bytes=8)),
    ("Kinesis", "KinesisV2[orders]", [shard(0)], KINESIS_LEFT, Left(bytes=4096, seconds=33.5)),
    ("Kinesis by shard", "KinesisV2[orders]", [shard(0, "1500"), OPEN], {}, Left(seconds=1.5)),
    ("closed beside an open shard", "KinesisV2[orders]", [CLOSED, OPEN], {}, Left(seconds=0.25)),
    ("all shards are closed", "KinesisV2[orders]", [CLOSED], {}, Left(seconds=90.0)),
    ("Kinesis, AWS: nothing", "connector.kinesis", AWS_KINESIS, {}, NOTHING_REPORTED),
    ("Kafka on Databricks", "KafkaV2[Subscribe[t]]", {"t": {"0": 5}}, KAFKA_LEFT, Left(bytes=80)),
    ("no number", "DeltaSource[t]", DELTA, {"numFilesOutstanding": "many"}, NOTHING_REPORTED),
    ("-1 is unknown", "DeltaSource[t]", DELTA, {"numFilesOutstanding": "-1"}, NOTHING_REPORTED),
    ("NaN", "DeltaSource[t]", DELTA, {"numFilesOutstanding": "NaN"}, NOTHING_REPORTED),
    ("infinity", "DeltaSource[t]", DELTA, {"numFilesOutstanding": "1e400"}, NOTHING_REPORTED),
)
def test_what_is_left_is_what_the_source_reports(description, end, metrics, expected):
    assert progress_of(description, end, metrics).reported == expected


@cases(
    "description, end, name",
    ("the folder of a Delta table", "DeltaSource[s3://lake/bronze/orders]", DELTA, "orders"),
    ("a Delta table without path", "DeltaSource[]", DELTA, "DeltaSource"),
    ("Iceberg", ICEBERG_STREAM, ICEBERG, "iceberg"),
    ("the class of any other", "com.example.Stream@1f", 5, "Stream"),
)
def test_a_source_without_topics_is_called_by_its_table_or_class(description, end, name):
    assert progress_of(description, end).name == name


def test_offsets_of_a_checkpoint_need_no_description():
    assert offsets_of('{"t":{"0":5}}') == {("t", "0"): 5}
    assert offsets_of('{"logOffset":5}') == {("", "0"): 5}
    assert offsets_of("not json") == offsets_of(None) == offsets_of(json.dumps(DELTA)) == {}


def test_only_kafka_has_a_broker_and_only_the_file_source_a_log_of_files():
    assert [kind.name for kind in NAMED.values() if kind.has_broker] == ["kafka"]
    assert [kind.name for kind in NAMED.values() if kind.logs_files] == ["files"]
