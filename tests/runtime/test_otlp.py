"""The shape of the requests; that a real Prometheus takes them is in tests/e2e/test_otlp.py."""

from dataclasses import replace

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from ledgerops.agent.otlp_receiver import protobuf_encoding
from ledgerops.metrics import DRIVER_METRICS
from ledgerops.metrics.latency import BATCH_DURATION
from ledgerops.metrics.model import HistogramTotal, Metric
from ledgerops.model.finding import Verdict
from ledgerops.runtime.family import Family
from ledgerops.runtime.otlp import MAX_POINTS, CauseLog, MetricsEncoder, logs_request
from ledgerops.runtime.snapshot import Published
from tests.build import T0
from tests.runtime.demo import KEY_SKEW

ROWS = Metric("ledgerops_input_rows_total", "Rows.", labels=("source",))
LAG = Metric("ledgerops_source_lag_seconds", "Lag.")
AGE = Metric("ledgerops_age_seconds", "Age.", age=True)
BY_NAME = {each.name: each for each in DRIVER_METRICS}
TASKS, CORES = BY_NAME["ledgerops_executor_tasks_total"], BY_NAME["ledgerops_executor_cores"]
SHARED = (("query", "daily_counts"),)


def published(metric, value, *labels):
    if isinstance(value, HistogramTotal):
        return Published(metric, [(SHARED, Family(metric, histogram=value))])
    return Published(metric, [(SHARED, Family(metric, ((labels, value),)))])


def histogram(bounds, counts, total):
    return published(BATCH_DURATION, HistogramTotal(bounds, counts, total))


def encoder(**options):
    return MetricsEncoder({"service.name": "ledgerops"}, T0, **options)


def export(made, *families, now=T0 + 10, taken=True):
    """The metrics of one export, by name."""
    found = {}
    for points in made.batches(families, now):
        [resource] = made.request(points)["resourceMetrics"]
        assert resource["resource"]["attributes"][0]["value"] == {"stringValue": "ledgerops"}
        [scope] = resource["scopeMetrics"]
        found |= {each["name"]: each for each in scope["metrics"]}
        if taken:
            made.accept(points)
    return found


def point_of(metric):
    """The one point of a metric."""
    kind = next(each for each in ("sum", "gauge", "histogram") if each in metric)
    [point] = metric[kind]["dataPoints"]
    return point


def test_a_counter_is_a_cumulative_sum_with_its_labels():
    [metric] = export(encoder(), published(ROWS, 5.0, "s")).values()

    query = {"key": "query", "value": {"stringValue": "daily_counts"}}
    source = {"key": "source", "value": {"stringValue": "s"}}
    instants = {"timeUnixNano": "1800000010000000000", "startTimeUnixNano": "1800000000000000000"}
    point = {"attributes": [query, source], **instants, "asDouble": 5.0}
    named = {"name": "ledgerops_input_rows_total", "description": "Rows.", "unit": ""}
    assert metric == named | {"sum": {"aggregationTemporality": 2, "isMonotonic": True, "dataPoints": [point]}}


def test_a_gauge_has_its_unit_and_no_start_and_an_age_is_that_of_the_export():
    lag, age = export(encoder(), published(LAG, 2.5), published(AGE, T0), now=T0 + 7).values()
    point = point_of(lag)
    assert (lag["unit"], point["asDouble"], "startTimeUnixNano" in point) == ("s", 2.5, False)
    assert point_of(age)["asDouble"] == 7.0


def test_a_histogram_has_counts_by_bucket_that_are_not_cumulative():
    [metric] = export(encoder(), histogram((1.0, 2.0), [3, 0, 1], 7.5)).values()
    point = point_of(metric)
    assert (point["count"], point["bucketCounts"], point["explicitBounds"]) == ("4", ["3", "0", "1"], [1.0, 2.0])
    assert point["sum"] == 7.5


def values(made, value, **options):
    [metric] = export(made, published(ROWS, value, "s"), **options).values()
    return metric["sum"]["dataPoints"][0]["asDouble"]


def test_a_delta_is_what_came_since_the_last_export_that_was_taken():
    made = encoder(delta=True)
    assert values(made, 5.0) == 5.0
    assert values(made, 8.0, taken=False) == 3.0
    assert values(made, 9.0) == 4.0  # what was not taken comes again
    assert values(made, 9.0) == 0.0
    assert values(made, 2.0) == 2.0  # it began anew


def test_a_delta_starts_where_the_one_before_ended():
    made = encoder(delta=True)
    values(made, 5.0, now=T0 + 10)
    [metric] = export(made, published(ROWS, 6.0, "s"), now=T0 + 20).values()
    assert metric["sum"]["aggregationTemporality"] == 1
    assert point_of(metric)["startTimeUnixNano"] == "1800000010000000000"


def test_a_delta_has_nothing_of_what_executors_did_before_the_start_and_a_cumulative_total_has():
    made, whole = encoder(delta=True), encoder()
    assert export(made, published(TASKS, 259_200.0, "1"), published(ROWS, 5.0, "s"), now=T0 + 10).keys() == {ROWS.name}
    [metric] = export(made, published(TASKS, 259_203.0, "1"), now=T0 + 20).values()
    point = point_of(metric)
    assert (point["asDouble"], point["startTimeUnixNano"]) == (3.0, "1800000010000000000")
    [metric] = export(made, published(TASKS, 7.0, "2"), now=T0 + 30).values()
    assert point_of(metric)["asDouble"] == 7.0, "one that joins later has done nothing before the start"

    [metric] = export(whole, published(TASKS, 259_200.0, "1")).values()
    assert point_of(metric)["asDouble"] == 259_200.0


def test_a_delta_has_the_first_value_of_an_executors_gauge():
    [metric] = export(encoder(delta=True), published(CORES, 4.0, "1")).values()
    assert point_of(metric)["asDouble"] == 4.0


def test_a_delta_of_a_histogram_is_by_bucket():
    made = encoder(delta=True)
    export(made, histogram((1.0,), [3, 1], 5.0))
    [metric] = export(made, histogram((1.0,), [4, 1], 5.5)).values()
    point = point_of(metric)
    assert (point["bucketCounts"], point["count"], point["sum"]) == (["1", "0"], "1", 0.5)


def test_a_series_that_ends_is_sent_once_without_a_value():
    made = encoder()
    export(made, published(LAG, 1.0), published(ROWS, 1.0, "s"))
    then, again, later = (export(made, published(ROWS, 2.0, "s"), taken=taken) for taken in (False, True, True))

    point = point_of(then[LAG.name])
    assert point["flags"] == 1 and "asDouble" not in point
    assert LAG.name in again  # the first one was not taken
    assert list(later) == [ROWS.name]


def test_a_large_driver_is_split_into_requests_and_no_series_is_left_out():
    series = tuple(((str(number),), 1.0) for number in range(MAX_POINTS + 1))
    batches = encoder().batches([Published(ROWS, [(SHARED, Family(ROWS, series))])], T0)
    assert [len(points) for points in batches] == [MAX_POINTS, 1]


def verdict(*causes, at=T0):
    return Verdict("daily_counts", at, "falling_behind", 40, root_causes=causes)


def attributes(record):
    return {each["key"]: each["value"]["stringValue"] for each in record["attributes"]}


def test_a_root_cause_is_logged_when_it_begins_and_when_it_ends():
    log = CauseLog("payments")
    [began] = log.take(verdict(KEY_SKEW))
    meanwhile = log.take(verdict(replace(KEY_SKEW, summary="other numbers"), at=T0 + 5))
    [ended] = log.take(verdict(at=T0 + 60))

    assert meanwhile == [] and log.take(verdict(at=T0 + 65)) == []
    assert began["body"] == {"stringValue": KEY_SKEW.summary}
    assert (began["severityNumber"], ended["severityNumber"]) == (17, 9)
    assert ended["timeUnixNano"] == "1800000060000000000"
    assert attributes(began) == {
        "query": "daily_counts",
        "rule": "key-skew",
        "state": "began",
        "component": "stage stage 41",
        "severity": "critical",
        "action": "aggregate in two steps, with a salt on the key",
        "app": "payments",
    }
    assert attributes(ended)["state"] == "ended"


def test_another_component_is_another_cause_and_a_query_that_is_no_longer_reported_is_forgotten():
    log = CauseLog()
    log.take(verdict(KEY_SKEW))
    other = replace(KEY_SKEW, component=replace(KEY_SKEW.component, name="stage 7"))
    assert [attributes(each)["state"] for each in log.take(verdict(other))] == ["ended", "began"]
    log.forget([])
    assert [attributes(each)["state"] for each in log.take(verdict(other))] == ["began"]


ENUMERATIONS = {"AGGREGATION_TEMPORALITY_CUMULATIVE": 2, "SEVERITY_NUMBER_ERROR": 17}  # names in protobuf


def plain(value):
    """Without what is empty, and with the numbers of enumerations."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if each != ""}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return ENUMERATIONS.get(value, value) if isinstance(value, str) else value


def metrics_document():
    made = encoder()
    [points] = made.batches([histogram((1.0,), [3, 1], 5.0)], T0)
    return made.request(points)


def logs_document():
    return logs_request({"a": "b"}, CauseLog().take(verdict(KEY_SKEW)))


@pytest.mark.parametrize(
    ("signal", "document", "message"),
    [("metrics", metrics_document, ExportMetricsServiceRequest), ("logs", logs_document, ExportLogsServiceRequest)],
)
def test_protobuf_says_the_same_as_json(signal, document, message):
    read = message.FromString(protobuf_encoding().encode(signal, document()))
    assert plain(MessageToDict(read)) == plain(document())


def test_a_delta_of_a_series_that_was_away_goes_on_from_what_was_taken():
    made = encoder(delta=True)
    values(made, 5.0)
    assert [*export(made, published(LAG, 1.0))] == [LAG.name]
    again = export(made, published(LAG, 1.0), published(ROWS, 7.0, "s"))
    assert point_of(again[ROWS.name])["asDouble"] == 2.0


def test_of_totals_that_are_away_only_so_many_are_kept(monkeypatch):
    monkeypatch.setattr("ledgerops.runtime.otlp.MAX_ABSENT", 1)
    made = encoder(delta=True)
    for source in "abc":
        export(made, published(ROWS, 5.0, source))
    export(made, published(LAG, 1.0))
    again = {source: export(made, published(ROWS, 7.0, source))[ROWS.name] for source in "ca"}
    assert [point_of(again[source])["asDouble"] for source in "ca"] == [2.0, 7.0]
