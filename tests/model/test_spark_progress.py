"""Spark's JSON as it is, in both dialects and on five versions, and its traps."""

import json

import pytest

from ledgerops.model.recording import read
from ledgerops.model.spark_progress import BadRecord, format_instant, parse_instant, parse_progress
from tests.build import T0, spark_json
from tests.paths import RECORDED
from tests.tables import cases

VERSIONS = ("3.5.7", "4.0.5", "4.1.3", "4.2.0", "4.3.0")


@pytest.fixture(params=VERSIONS)
def recorded(request: pytest.FixtureRequest) -> list:
    """The batches that a version of Spark reported."""
    return [each for each in read(RECORDED / f"spark-{request.param}.jsonl") if each.kind == "progress"]


PHASES = {"latest_offset", "get_batch", "query_planning", "wal_commit", "add_batch", "commit_offsets"}


def test_every_recorded_batch_of_every_version_is_read_whole(recorded):
    for each in recorded:
        batch, data = parse_progress(each.data), each.data
        assert (batch.query, batch.run_id, batch.batch_id) == (each.query, data["runId"], data["batchId"])
        assert (batch.rows, batch.duration) == (data["numInputRows"], data["durationMs"]["triggerExecution"] / 1000)
        assert set(batch.phases) <= PHASES
        assert sum(batch.phases.values()) <= batch.duration + 0.05
        assert len(batch.operators) == len(data["stateOperators"])
        assert "@" not in batch.sink, "the hash of an object changes with each run"
        custom = {name for operator in batch.operators for name in operator.custom}
        assert not any("partition_" in name for name in custom), "snapshot versions: names change from batch to batch"


def test_a_watermark_that_was_never_set_is_unknown_and_not_1970(recorded):
    unset = [each for each in recorded if each.data.get("eventTime", {}).get("watermark", "").startswith("1970")]
    assert unset
    assert all(parse_progress(each.data).watermark is None for each in unset)


def test_backlog_is_read_per_partition():
    [found] = parse_progress(spark_json()).sources
    first, second = ("transactions", "0"), ("transactions", "1")
    assert (found.name, found.latest, found.end) == (
        "transactions",
        {first: 250, second: 400},
        {first: 200, second: 400},
    )


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


@cases(
    "changes, message",
    ("no run id", {"runId": None}, "no runId"),
    ("no batch id", {"batchId": None}, "no batchId"),
    ("a truth value for a batch id", {"batchId": True}, "no batchId"),
    ("no time", {"timestamp": 12}, "no timestamp"),
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


def test_instants_go_there_and_back_and_text_without_a_zone_is_utc():
    assert parse_instant(format_instant(T0 + 0.123)) == pytest.approx(T0 + 0.123, abs=0.0005)
    assert parse_instant("2027-01-15T08:00:00") == parse_instant("2027-01-15T08:00:00Z")


@cases(
    "text, seconds",
    ("milliseconds read as seconds", "+58865-03-19T02:30:04.000Z", 1_795_439_529_004.0),
    ("the same without a sign", "58865-03-19T02:30:04.000Z", 1_795_439_529_004.0),
    ("the second after 9999", "+10000-01-01T00:00:00.000Z", 253_402_300_800.0),
    ("a sign that says nothing", "+2026-11-23T10:00:00.000Z", 1_795_428_000.0),
    ("the epoch", "1970-01-01T00:00:00.000Z", 0.0),
    ("before the epoch", "1969-12-31T23:59:59.500Z", -0.5),
    ("the year 1", "0001-01-01T00:00:00Z", -62_135_596_800.0),
    ("1 BC", "0000-12-31T00:00:00Z", -62_135_683_200.0),
    ("44 BC", "-0043-03-15T12:00:00Z", -63_517_780_800.0),
    ("the largest of Java's longs", "+292278994-08-17T07:12:55.807Z", 9_223_372_036_854_775.807),
    ("the smallest", "-292275055-05-16T16:47:04.192Z", -9_223_372_036_854_775.808),
)
def test_years_of_any_length_and_sign_are_read(text, seconds):
    assert parse_instant(text) == pytest.approx(seconds, rel=1e-15, abs=1e-6)


@pytest.mark.parametrize(
    "text", ["+58865-13-19T02:30:04Z", "+58865-02-30T00:00:00Z", f"+{'9' * 400}-01-01T00:00:00Z", "+5-01-01", "-", ""]
)
def test_what_is_no_instant_of_any_year_is_none(text):
    assert parse_instant(text) is None


def test_an_event_time_of_1970_or_before_is_one():
    told = {"min": "0001-01-01T00:00:00.000Z", "avg": "1970-01-01T00:00:00.000Z", "max": "1970-01-21T18:43:48.000Z"}
    batch = parse_progress(spark_json(eventTime=told | {"watermark": "1970-01-01T00:00:00.000Z"}))
    assert (batch.event_time_min, batch.event_time_avg, batch.event_time_max) == (-62_135_596_800.0, 0.0, 1_795_428.0)
    assert batch.watermark is None


@pytest.mark.parametrize("told", [0, -5, None])
def test_a_batch_takes_at_least_what_sparks_clock_resolves(told):
    data = spark_json(batchDuration=told, durationMs={"triggerExecution": told})
    assert parse_progress(data).duration == 0.001


DOCUMENTED = {  # as the documentation of Databricks shows a batch of real-time mode
    "processingLatencyMs": {"P0": 0, "P50": 0, "P90": 0, "P95": 0, "P99": 0},
    "sourceQueuingLatencyMs": {"P0": 0, "P50": 1, "P90": 1, "P95": 2, "P99": 3},
    "e2eLatencyMs": {"P0": 0, "P50": 1, "P90": 1, "P95": 2, "P99": 4},
}


SMALL_LETTERS = {"e2eLatencyMs": {"p50": 60.0}}


@pytest.mark.parametrize("key", ["rtmMetrics", "latencies"])
def test_latencies_of_real_time_mode_are_seconds_by_kind_and_quantile(key):
    found = parse_progress(spark_json(**{key: DOCUMENTED})).record_latencies
    assert len(found) == 15
    told = {("end_to_end", "0.99"): 0.004, ("source_queue", "0.5"): 0.001, ("processing", "0"): 0.0}
    assert told.items() <= found.items()
    assert parse_progress(spark_json(**{key: SMALL_LETTERS})).record_latencies == {("end_to_end", "0.5"): 0.06}


NO_LATENCIES = {"e2eLatencyMs": {"P99": "4", "P50": None, "max": 9, "P95": -1}}


@pytest.mark.parametrize("value", [None, 7, [], {}, {"e2eLatencyMs": 4}, NO_LATENCIES, {"x": {"P50": 1}}])
def test_what_is_no_latency_is_left_out(value):
    assert parse_progress(spark_json(rtmMetrics=value)).record_latencies == {}


@cases(
    "start, rows, times",
    ("two actions on the batch", {"shop.nl": {"0": 0}, "shop.de": {"0": 0}}, 1040, 2),
    ("a topic that is new", {"shop.nl": {"0": 0}}, 520, 1),
    ("a new topic and two actions: nobody can tell", {"shop.nl": {"0": 0}}, 1040, 1),
    ("the first batch", None, 520, 1),
)
def test_rows_of_a_new_topic_are_no_repeated_ones(start, rows, times):
    end = {"shop.nl": {"0": 20}, "shop.de": {"0": 500}}
    source = {"description": "KafkaV2[SubscribePattern[shop.*]]", "startOffset": start, "endOffset": end}
    batch = parse_progress(spark_json(sources=[source | {"numInputRows": rows}], numInputRows=rows))

    assert [each.times_read for each in batch.sources] == [times]
    assert batch.rows == rows / times
