"""Spark's JSON as it is, in both dialects and on five versions, and its traps."""

from __future__ import annotations

import json

import pytest

from ledgerops.model.recording import read
from ledgerops.model.spark_progress import BadRecord, format_instant, parse_instant, parse_offsets, parse_progress
from tests.build import T0, spark_json
from tests.paths import RECORDED

VERSIONS = ("3.5.7", "4.0.5", "4.1.3", "4.2.0", "4.3.0")


@pytest.fixture(params=VERSIONS)
def recorded(request: pytest.FixtureRequest) -> list:
    return [each for each in read(RECORDED / f"spark-{request.param}.jsonl") if each.kind == "progress"]


def test_every_recorded_batch_of_every_version_is_read_whole(recorded):
    for each in recorded:
        batch = parse_progress(each.data)
        assert (batch.query, batch.run_id, batch.batch_id) == (each.query, each.data["runId"], each.data["batchId"])
        assert batch.rows == each.data["numInputRows"]
        assert batch.duration == each.data["durationMs"]["triggerExecution"] / 1000
        assert set(batch.phases) <= {
            "latest_offset", "get_batch", "query_planning", "wal_commit", "add_batch", "commit_offsets",
        }  # fmt: skip
        assert sum(batch.phases.values()) <= batch.duration + 0.05
        assert len(batch.operators) == len(each.data["stateOperators"])


def test_a_watermark_that_was_never_set_is_unknown_and_not_1970(recorded):
    unset = [each for each in recorded if each.data.get("eventTime", {}).get("watermark", "").startswith("1970")]
    assert unset
    assert all(parse_progress(each.data).watermark is None for each in unset)


def test_sink_names_lose_the_object_hash_that_changes_with_each_run(recorded):
    assert not any("@" in parse_progress(each.data).sink for each in recorded)


def test_snapshot_versions_are_no_custom_metrics_because_their_names_change_from_batch_to_batch(recorded):
    operators = [operator for each in recorded for operator in parse_progress(each.data).operators]
    assert not any("partition_" in name for operator in operators for name in operator.custom)


def test_the_batch_duration_is_there_although_spark_3_5_has_no_such_field():
    [first] = [each for each in read(RECORDED / "spark-3.5.7.jsonl") if each.kind == "progress"][:1]
    assert "batchDuration" not in first.data
    assert parse_progress(first.data).duration > 0


def test_backlog_is_read_per_partition():
    [read_from] = parse_progress(spark_json()).sources
    assert read_from.name == "transactions"
    assert read_from.latest == {("transactions", "0"): 250, ("transactions", "1"): 400}
    assert read_from.end == {("transactions", "0"): 200, ("transactions", "1"): 400}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"t": {"0": 5, "1": 6}}, {("t", "0"): 5, ("t", "1"): 6}, id="Kafka"),
        pytest.param('{"t": {"0": 5}}', {("t", "0"): 5}, id="Kafka as text, as in the event log"),
        pytest.param(4, {("src", "0"): 4}, id="bare number"),
        pytest.param("4", {("src", "0"): 4}, id="bare number as text, as in the event log"),
        pytest.param({"logOffset": 3}, {("src", "0"): 3}, id="file source"),
        pytest.param({"index": 3}, {("src", "index"): 3}, id="simple Python source"),
        pytest.param(None, {}, id="null"),
        pytest.param("null", {}, id="the word null, as PySpark's fromJObject gives it"),
        pytest.param("None", {}, id="the word None, as PySpark's fromJObject gives it"),
        pytest.param({"reservoirId": "x", "index": 3, "isStartingVersion": True}, {}, id="Delta: not countable"),
        pytest.param("not json", {}, id="some text"),
        pytest.param(True, {}, id="a truth value is no number"),
        pytest.param([1, 2], {}, id="a list"),
        pytest.param({"t": {"0": "5"}}, {}, id="text where an offset should be"),
    ],
)
def test_offsets_of_any_source_become_partitions_or_nothing(value, expected):
    assert parse_offsets(value, "src") == expected


def test_the_event_log_dialect_gives_the_same_record():
    listener = spark_json()
    log = spark_json(stateOperators=[], observedMetrics={})
    del log["numInputRows"], log["batchDuration"]
    for source in log["sources"]:
        for key in ("startOffset", "endOffset", "latestOffset"):
            source[key] = json.dumps(source[key])
        source["metrics"] = {}
    assert parse_progress(log) == parse_progress(listener)


@pytest.mark.parametrize(
    ("changes", "field", "expected"),
    [
        pytest.param({"sink": {"description": "x", "numOutputRows": -1}}, "output_rows", None, id="-1 output rows"),
        pytest.param({"sink": {}}, "output_rows", None, id="no output rows"),
        pytest.param({"name": None}, "query", "query-9f0d1c3e", id="unnamed query"),
        pytest.param({"name": ""}, "query", "query-9f0d1c3e", id="empty name"),
        pytest.param({"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}, "watermark", None, id="1970"),
        pytest.param({"eventTime": {"watermark": "garbage"}}, "watermark", None, id="watermark that is no time"),
        pytest.param({"eventTime": None}, "event_time_max", None, id="no event time"),
        pytest.param({"durationMs": {"triggerExecution": 10, "getOffset": 4}}, "phases", {"latest_offset": 0.004}, id="V1"),  # noqa: E501
        pytest.param({"durationMs": {"someNewPhase": 5}}, "phases", {"some_new_phase": 0.005}, id="a phase of the future"),  # noqa: E501
        pytest.param({"durationMs": {}}, "duration", 0.9, id="no triggerExecution: batchDuration serves"),
        pytest.param({"sources": None}, "sources", (), id="no sources"),
        pytest.param({"stateOperators": None}, "operators", (), id="no state"),
        pytest.param({"observedMetrics": {"o": None}}, "observed", {}, id="an observation without a row"),
    ],
)  # fmt: skip
def test_absent_beats_wrong(changes, field, expected):
    assert getattr(parse_progress(spark_json(**changes)), field) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"runId": None}, "no runId", id="no run id"),
        pytest.param({"batchId": None}, "no batchId", id="no batch id"),
        pytest.param({"batchId": True}, "no batchId", id="a truth value for a batch id"),
        pytest.param({"timestamp": 12}, "no timestamp", id="no time"),
    ],
)
def test_a_record_without_its_identity_is_refused(changes, message):
    with pytest.raises(BadRecord, match=message):
        parse_progress(spark_json(**changes))


def test_two_sources_or_operators_of_one_name_are_told_apart():
    [source] = spark_json()["sources"]
    twice = {"operatorName": "stateStoreSave", "numRowsTotal": 1}
    batch = parse_progress(spark_json(sources=[source, source], stateOperators=[twice, twice]))
    assert [each.name for each in batch.sources] == ["transactions", "transactions-2"]
    assert [each.name for each in batch.operators] == ["stateStoreSave", "stateStoreSave-2"]


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("KafkaV2[Subscribe[transactions, accounts]]", "transactions,accounts"),
        ("RateStreamV2[rowsPerSecond=100, rampUpTimeSeconds=0", "RateStreamV2"),
        ("FileStreamSource[file:/landing]", "FileStreamSource"),
        ("org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@540d7360", "PythonMicroBatchStream"),  # noqa: E501
        ("", "source"),
    ],
)  # fmt: skip
def test_a_source_without_topics_is_called_by_its_short_name(description, name):
    [source] = parse_progress(spark_json(sources=[{"description": description}])).sources
    assert source.name == name


def test_instants_go_there_and_back():
    assert parse_instant(format_instant(T0 + 0.123)) == pytest.approx(T0 + 0.123, abs=0.0005)


def test_text_without_a_zone_is_utc():
    assert parse_instant("2027-01-15T08:00:00") == parse_instant("2027-01-15T08:00:00Z")


@pytest.mark.parametrize("told", [0, -5, None])
def test_a_batch_takes_at_least_what_sparks_clock_resolves(told):
    data = spark_json(batchDuration=told, durationMs={"triggerExecution": told})
    assert parse_progress(data).duration == 0.001
