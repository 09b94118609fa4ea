"""The shape of the requests; that a real Prometheus takes them is in tests/e2e/test_otlp.py."""

from dataclasses import replace

import pytest

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
SHARED = (("query", "daily_counts"),)


def published(metric, value, labels=()):
    if isinstance(value, HistogramTotal):
        return Published(metric, [(SHARED, Family(metric, histogram=value))])
    return Published(metric, [(SHARED, Family(metric, ((labels, value),)))])


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


def test_a_counter_is_a_cumulative_sum_with_its_labels():
    [metric] = export(encoder(), published(ROWS, 5.0, ("s",))).values()

    assert metric == {
        "name": "ledgerops_input_rows_total",
        "description": "Rows.",
        "unit": "",
        "sum": {
            "aggregationTemporality": 2,
            "isMonotonic": True,
            "dataPoints": [
                {
                    "attributes": [
                        {"key": "query", "value": {"stringValue": "daily_counts"}},
                        {"key": "source", "value": {"stringValue": "s"}},
                    ],
                    "timeUnixNano": "1800000010000000000",
                    "startTimeUnixNano": "1800000000000000000",
                    "asDouble": 5.0,
                }
            ],
        },
    }


def test_a_gauge_has_its_unit_and_no_start():
    metric = export(encoder(), published(LAG, 2.5))["ledgerops_source_lag_seconds"]
    [point] = metric["gauge"]["dataPoints"]
    assert (metric["unit"], point["asDouble"], "startTimeUnixNano" in point) == ("s", 2.5, False)


def test_an_age_is_that_of_the_export():
    metric = export(encoder(), published(AGE, T0), now=T0 + 7)["ledgerops_age_seconds"]
    assert metric["gauge"]["dataPoints"][0]["asDouble"] == 7.0


def test_a_histogram_has_counts_by_bucket_that_are_not_cumulative():
    total = HistogramTotal((1.0, 2.0), [3, 0, 1], 7.5)
    [point] = export(encoder(), published(BATCH_DURATION, total))[BATCH_DURATION.name]["histogram"]["dataPoints"]
    assert (point["count"], point["bucketCounts"], point["explicitBounds"]) == ("4", ["3", "0", "1"], [1.0, 2.0])
    assert point["sum"] == 7.5


def values(made, value, **options):
    [metric] = export(made, published(ROWS, value, ("s",)), **options).values()
    [point] = metric["sum"]["dataPoints"]
    return point["asDouble"]


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
    [metric] = export(made, published(ROWS, 6.0, ("s",)), now=T0 + 20).values()
    assert metric["sum"]["aggregationTemporality"] == 1
    assert metric["sum"]["dataPoints"][0]["startTimeUnixNano"] == "1800000010000000000"


def test_a_delta_of_a_histogram_is_by_bucket():
    made = encoder(delta=True)
    export(made, published(BATCH_DURATION, HistogramTotal((1.0,), [3, 1], 5.0)))
    metrics = export(made, published(BATCH_DURATION, HistogramTotal((1.0,), [4, 1], 5.5)))
    [point] = metrics[BATCH_DURATION.name]["histogram"]["dataPoints"]
    assert (point["bucketCounts"], point["count"], point["sum"]) == (["1", "0"], "1", 0.5)


def test_a_series_that_ends_is_sent_once_without_a_value():
    made = encoder()
    export(made, published(LAG, 1.0), published(ROWS, 1.0, ("s",)))
    then = export(made, published(ROWS, 2.0, ("s",)), taken=False)
    again = export(made, published(ROWS, 2.0, ("s",)))
    later = export(made, published(ROWS, 2.0, ("s",)))

    [point] = then[LAG.name]["gauge"]["dataPoints"]
    assert point["flags"] == 1 and "asDouble" not in point
    assert LAG.name in again  # the first one was not taken
    assert list(later) == [ROWS.name]


def test_a_large_driver_is_split_into_requests_and_no_series_is_left_out():
    series = tuple(((str(number),), 1.0) for number in range(MAX_POINTS + 1))
    batches = list(encoder().batches([Published(ROWS, [(SHARED, Family(ROWS, series))])], T0))
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


def test_a_healthy_query_logs_nothing():
    assert CauseLog().take(verdict()) == []


def test_another_component_is_another_cause():
    log = CauseLog()
    log.take(verdict(KEY_SKEW))
    other = replace(KEY_SKEW, component=replace(KEY_SKEW.component, name="stage 7"))
    assert [attributes(each)["state"] for each in log.take(verdict(other))] == ["ended", "began"]


def test_a_query_that_is_no_longer_reported_is_forgotten():
    log = CauseLog()
    log.take(verdict(KEY_SKEW))
    log.forget([])
    assert len(log.take(verdict(KEY_SKEW))) == 1


def test_records_are_sent_in_one_request():
    request = logs_request({"service.name": "ledgerops"}, CauseLog().take(verdict(KEY_SKEW)))
    assert len(request["resourceLogs"][0]["scopeLogs"][0]["logRecords"]) == 1


@pytest.mark.parametrize("signal", ["metrics", "logs"])
def test_protobuf_says_the_same_as_json(signal):
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    from ledgerops.agent.otlp_receiver import protobuf_encoding

    made = encoder()
    family = published(BATCH_DURATION, HistogramTotal((1.0,), [3, 1], 5.0))
    [points] = made.batches([family], T0)
    metrics, logs = made.request(points), logs_request({"a": "b"}, CauseLog().take(verdict(KEY_SKEW)))
    document, message = {
        "metrics": (metrics, ExportMetricsServiceRequest()),
        "logs": (logs, ExportLogsServiceRequest()),
    }[signal]
    message.ParseFromString(protobuf_encoding().encode(signal, document))

    def plain(value):  # enumerations are names there
        names = {"AGGREGATION_TEMPORALITY_CUMULATIVE": 2, "SEVERITY_NUMBER_ERROR": 17}
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if each != ""}
        if isinstance(value, list):
            return [plain(each) for each in value]
        return names.get(value, value) if isinstance(value, str) else value

    assert plain(MessageToDict(message)) == plain(document)
