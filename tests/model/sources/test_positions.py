"""Each documented form of an offset: its kind, what can be subtracted, the place in a table, what is left."""

import json

import pytest

from ledgerops.model.records import NOTHING_REPORTED, Left, TablePosition
from ledgerops.model.sources import NAMED, kind_of, offsets_of
from ledgerops.model.spark_progress import parse_progress
from tests.build import spark_json

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


@pytest.mark.parametrize(
    ("description", "end", "kind", "offsets"),
    [
        pytest.param("KafkaV2[Subscribe[t]]", {"t": {"0": 5, "1": 6}}, "kafka", {("t", "0"): 5, ("t", "1"): 6}, id="K"),
        pytest.param("KafkaSourceV1[Subscribe[t]]", {"t": {"0": 5}}, "kafka", {("t", "0"): 5}, id="Kafka V1"),
        pytest.param(EVENT_HUBS, {"hub": {"0": 5}}, "eventhubs", {("hub", "0"): 5}, id="Event Hubs"),
        pytest.param("DeltaSource[s3://lake/bronze/orders]", DELTA, "delta", {}, id="Delta"),
        pytest.param("DeltaSource[file:/t]", DELTA | {"sourceVersion": 3, "index": -20}, "delta", {}, id="Delta 3"),
        pytest.param(ICEBERG_STREAM, ICEBERG, "iceberg", {}, id="Iceberg"),
        pytest.param("KinesisV2[orders]", [shard(0), shard(1)], "kinesis", {}, id="Kinesis, Databricks"),
        pytest.param("KinesisV2[orders]", [], "kinesis", {}, id="Kinesis without shards"),
        pytest.param(AWS_STREAM, AWS_KINESIS, "kinesis", {}, id="Kinesis, AWS"),
        pytest.param("CloudFilesSource[/mnt/landing/]", CLOUD_FILES, "autoloader", {}, id="Auto Loader"),
        pytest.param(
            f"CloudFilesSource[{CONTAINER}]", {"seqNum": 5, "sourceVersion": 3, **BACKFILL, "lastInputPath": CONTAINER},
            "autoloader", {}, id="Auto Loader with a path",
        ),
        pytest.param("PubSub[sub]", PUB_SUB, "pubsub", {}, id="Pub/Sub"),
        pytest.param("FileStreamSource[f:/in]", {"logOffset": 3}, "files", {("FileStreamSource", "0"): 3}, id="files"),
        pytest.param(
            "RatePerMicroBatchStream[rowsPerBatch=10]", {"offset": 20, "timestamp": 1667453455118}, "rate-micro-batch",
            {("RatePerMicroBatchStream", "0"): 20}, id="rate-micro-batch",
        ),
        pytest.param("RateStreamV2[rowsPerSecond=5]", 4, "other", {("RateStreamV2", "0"): 4}, id="a bare number"),
        pytest.param("ordersReader", {"index": 3}, "other", {("ordersReader", "index"): 3}, id="Python, one field"),
        pytest.param("shards", {"0": 5, "1": 6}, "other", {("shards", "0"): 5, ("shards", "1"): 6}, id="a flat table"),
        pytest.param("ledger", {"customers": {"0": 5}}, "other", {("customers", "0"): 5}, id="the embedded source"),
        pytest.param("KafkaV2[Subscribe[t]]", {}, "kafka", {}, id="Kafka without partitions"),
        pytest.param("KafkaV2[Subscribe[t]]", None, "kafka", {}, id="before the first batch"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dialect", ["listener", "event log"])
def test_every_known_form_is_read_by_its_kind(description, end, kind, offsets, dialect):
    text = end if dialect == "listener" or end is None else json.dumps(end)
    source = progress_of(description, text)
    assert (source.kind, source.end, source.known_form, source.rows) == (kind, offsets, True, 20)


@pytest.mark.parametrize(
    ("description", "end"),
    [
        pytest.param("changes", {"lsn": 71, "commit_ts": 1667453455118}, id="Python, two fields"),
        pytest.param("changes", {"0": 5, "at": 6}, id="one key that is no number"),
        pytest.param("changes", {"at": "2026-11-01"}, id="text in an object"),
        pytest.param("changes", "somewhere", id="text"),
        pytest.param("changes", [1, 2], id="a list"),
        pytest.param("changes", True, id="a truth value"),
        pytest.param("KafkaV2[Subscribe[t]]", {"t": {"0": "5"}}, id="text where Kafka has a number"),
        pytest.param("KafkaV2[Subscribe[t]]", {"t": 5}, id="Kafka without partitions in a topic"),
        pytest.param("DeltaSource[t]", {"reservoirVersion": "42", "index": 1}, id="a version that is no number"),
        pytest.param("DeltaSource[t]", {"reservoirVersion": 42}, id="Delta without index"),
        pytest.param("x", {"snapshot_id": None, "scan_all_files": True, "position": 0}, id="Iceberg without id"),
        pytest.param("KinesisV2[orders]", [{"shard": 1}], id="a shard without a sequence number"),
        pytest.param("FileStreamSource[file:/in]", {"seqNum": 5}, id="a file source without entry"),
        pytest.param("RatePerMicroBatchStream[", {"timestamp": 6}, id="rate-micro-batch without offset"),
    ],
)
def test_an_unknown_form_is_said_and_counts_nothing(description, end):
    source = progress_of(description, end, latest=end)
    assert (source.known_form, source.end, source.latest, source.read, source.table) == (False, {}, {}, 0, None)


@pytest.mark.parametrize(
    ("offset", "kind"),
    [
        pytest.param(DELTA, "delta", id="Delta"),
        pytest.param(ICEBERG, "iceberg", id="Iceberg"),
        pytest.param(AWS_KINESIS, "kinesis", id="Kinesis, AWS"),
        pytest.param([shard(0)], "kinesis", id="Kinesis, Databricks"),
        pytest.param(CLOUD_FILES, "autoloader", id="Auto Loader"),
        pytest.param(PUB_SUB, "pubsub", id="Pub/Sub"),
        pytest.param({"logOffset": 3}, "files", id="files"),
        pytest.param({"t": {"0": 5}}, "other", id="partitions of anything"),
        pytest.param(5, "other", id="a number of anything"),
        pytest.param(None, "other", id="nothing"),
    ],
)
def test_without_a_known_description_the_form_of_the_offset_decides(offset, kind):
    assert kind_of("com.example.Stream@1f", offset).name == kind


SNAPSHOT = ICEBERG["snapshot_id"]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        pytest.param(DELTA, (42, -1, False), id="before a version"),
        pytest.param(DELTA | {"index": 6}, (42, 6, False), id="within a version"),
        pytest.param(DELTA | {"sourceVersion": 3, "index": -19}, (42, -1, False), id="a changed schema"),
        pytest.param(DELTA | {"isStartingVersion": True, "index": 3}, (42, 3, True), id="first snapshot"),
        pytest.param(ICEBERG, (SNAPSHOT, 3, False), id="Iceberg"),
        pytest.param(ICEBERG | {"scan_all_files": True}, (SNAPSHOT, 3, True), id="all files"),
    ],
)
def test_a_place_in_a_table_is_a_version_and_a_file(offset, expected):
    assert progress_of("com.example.Stream@1f", offset).table == TablePosition(*expected)


DELTA_LEFT = {"numBytesOutstanding": "3456", "numFilesOutstanding": "8"}
CLOUD_FILES_LEFT = {"numFilesOutstanding": "238", "numBytesOutstanding": "163939124006", "approximateQueueSize": "0"}
PUB_SUB_LEFT = {"numRecordsReadyToProcess": "1", "sizeOfRecordsReadyToProcess": "8"}
KINESIS_LEFT = {"avgMsBehindLatest": "32000.0", "maxMsBehindLatest": "33500", "totalPrefetchedBytes": "4096"}
KAFKA_LEFT = {"estimatedTotalBytesBehindLatest": "80.5", "maxOffsetsBehindLatest": "4"}
OPEN, CLOSED = shard(1, "250"), shard(0, "90000", closed=True)


@pytest.mark.parametrize(
    ("description", "end", "metrics", "expected"),
    [
        pytest.param("DeltaSource[t]", DELTA, DELTA_LEFT, Left(files=8, bytes=3456), id="Delta on Databricks"),
        pytest.param("DeltaSource[t]", DELTA, {}, NOTHING_REPORTED, id="Delta"),
        pytest.param(
            "CloudFilesSource[t]", CLOUD_FILES, CLOUD_FILES_LEFT, Left(files=238, bytes=163939124006), id="Auto Loader"
        ),
        pytest.param("PubSub", PUB_SUB, PUB_SUB_LEFT, Left(rows=1, bytes=8), id="Pub/Sub"),
        pytest.param("KinesisV2[orders]", [shard(0)], KINESIS_LEFT, Left(bytes=4096, seconds=33.5), id="Kinesis"),
        pytest.param("KinesisV2[orders]", [shard(0, "1500"), OPEN], {}, Left(seconds=1.5), id="Kinesis by shard"),
        pytest.param("KinesisV2[orders]", [CLOSED, OPEN], {}, Left(seconds=0.25), id="closed beside an open shard"),
        pytest.param("KinesisV2[orders]", [CLOSED], {}, Left(seconds=90.0), id="all shards are closed"),
        pytest.param("connector.kinesis", AWS_KINESIS, {}, NOTHING_REPORTED, id="Kinesis, AWS: nothing"),
        pytest.param("KafkaV2[Subscribe[t]]", {"t": {"0": 5}}, KAFKA_LEFT, Left(bytes=80), id="Kafka on Databricks"),
        pytest.param("DeltaSource[t]", DELTA, {"numFilesOutstanding": "many"}, NOTHING_REPORTED, id="no number"),
        pytest.param("DeltaSource[t]", DELTA, {"numFilesOutstanding": "-1"}, NOTHING_REPORTED, id="-1 is unknown"),
        pytest.param("DeltaSource[t]", DELTA, {"numFilesOutstanding": "NaN"}, NOTHING_REPORTED, id="NaN"),
        pytest.param("DeltaSource[t]", DELTA, {"numFilesOutstanding": "1e400"}, NOTHING_REPORTED, id="infinity"),
    ],
)
def test_what_is_left_is_what_the_source_reports(description, end, metrics, expected):
    assert progress_of(description, end, metrics).reported == expected


@pytest.mark.parametrize(
    ("description", "end", "name"),
    [
        pytest.param("DeltaSource[s3://lake/bronze/orders]", DELTA, "orders", id="the folder of a Delta table"),
        pytest.param("DeltaSource[]", DELTA, "DeltaSource", id="a Delta table without path"),
        pytest.param(ICEBERG_STREAM, ICEBERG, "iceberg", id="Iceberg"),
        pytest.param("com.example.Stream@1f", 5, "Stream", id="the class of any other"),
    ],
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
