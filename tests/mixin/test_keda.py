"""The ScaledObject: what its queries answer, by promtool, and which fields it has."""

import yaml

from ledgerops.diagnosis.rules import BY_SLUG
from ledgerops.mixin.keda import NOT_CURED, lag_query, pressure_query
from ledgerops.mixin.kubernetes import kubernetes_files
from ledgerops.mixin.site import Site
from tests.promtool import tried
from tests.tables import cases

SITE = Site(kubernetes_workers="payments=spark-worker, shop=shop-worker", kubernetes_workers_max=4)
LABELS = 'job="ledgerops", app="payments", instance="i", query="{}"'


def test_without_the_setting_there_is_none():
    assert "scaledobject.yaml" not in kubernetes_files(Site())


def test_each_application_has_one_with_its_warning():
    first, second = yaml.safe_load_all(kubernetes_files(SITE)["scaledobject.yaml"])

    assert (first["apiVersion"], first["kind"]) == ("keda.sh/v1alpha1", "ScaledObject")
    assert first["spec"]["scaleTargetRef"] == {"kind": "Deployment", "name": "spark-worker"}
    assert second["spec"]["scaleTargetRef"]["name"] == "shop-worker"
    assert (first["spec"]["minReplicaCount"], first["spec"]["maxReplicaCount"]) == (1, 4)
    assert "More workers help only up to the number of source partitions" in str(first["metadata"]["annotations"])
    lag, pressure = first["spec"]["triggers"]
    assert (lag["metadata"]["threshold"], pressure["metadata"]["threshold"]) == ("30", "0.7")
    assert {each["metricType"] for each in (lag, pressure)} == {"Value"}
    assert all(isinstance(value, str) for each in (lag, pressure) for value in each["metadata"].values())
    assert 'app="payments"' in lag["metadata"]["query"] and 'app="shop"' not in lag["metadata"]["query"]


def test_the_causes_that_workers_do_not_cure_are_rules():
    assert set(NOT_CURED) <= set(BY_SLUG)


def lag_of(query, seconds, app="payments"):
    labels = LABELS.format(query).replace("payments", app)
    return {"series": f"ledgerops_query_lag_seconds{{{labels}}}", "values": str(seconds)}


def cause_of(query, rule, value=1):
    return {"series": f'ledgerops_root_cause{{{LABELS.format(query)}, rule="{rule}"}}', "values": str(value)}


def trigger_of(query, seconds):
    labels = LABELS.format(query).replace('instance="i", ', "")  # a recording rule keeps no instance
    return {"series": f"query:trigger:seconds{{{labels}}}", "values": str(seconds)}


@cases(
    "series, expected",
    ("the longest lag", [lag_of("a", 90), lag_of("b", 5)], 90),
    ("batches that run back to back", [lag_of("a", 90), trigger_of("a", 0)], 90),
    ("a trigger of five minutes, and no longer lag", [lag_of("a", 300), trigger_of("a", 300)], 0),
    ("a lag beyond two triggers of five minutes", [lag_of("a", 690), trigger_of("a", 300)], 90),
    ("another one ends by itself", [lag_of("a", 300), trigger_of("a", 300), lag_of("b", 40)], 40),
    ("a cause that workers cure", [lag_of("a", 90), cause_of("a", "input-overload")], 90),
    ("one hot key: as many as now", [lag_of("a", 90), cause_of("a", "key-skew")], 30),
    ("another query needs them", [lag_of("a", 90), lag_of("b", 60), cause_of("a", "slow-sink")], 60),
    ("short lag stays short", [lag_of("a", 5), cause_of("a", "key-skew")], 5),
    ("a cause that is over", [lag_of("a", 90), cause_of("a", "key-skew", 0)], 90),
    ("another application", [lag_of("a", 90, app="shop")], None),
    ("nobody reports: no answer, and nothing is removed", [], None),
)
def test_how_long_the_lag_is_that_workers_can_cure(tmp_path, series, expected):
    wanted = [] if expected is None else [{"labels": "{}", "value": expected}]
    evaluated(tmp_path, series, lag_query("payments", SITE), wanted)


@cases(
    "causes, expected",
    ("the highest pressure", [], 0.9),
    ("a slow sink: as many as now", [cause_of("b", "slow-sink")], 0.7),
    ("the sink of another query", [cause_of("a", "slow-sink")], 0.9),
)
def test_how_high_the_pressure_is_that_workers_can_lower(tmp_path, causes, expected):
    series = [
        {"series": f"ledgerops_pressure_ratio{{{LABELS.format(query)}}}", "values": value}
        for query, value in (("a", "0.4"), ("b", "0.9"))
    ]
    wanted = [{"labels": "{}", "value": expected}]
    evaluated(tmp_path, [*series, *causes], pressure_query("payments", SITE), wanted)


def evaluated(folder, series, query, wanted):
    case = {"interval": "1m", "input_series": series, "promql_expr_test": [
        {"expr": query, "eval_time": "0m", "exp_samples": wanted}
    ]}  # fmt: skip

    passed, said = tried(folder, {"tests": [case]})
    assert passed, said
