"""Two applications whose queries have equal names, on one Prometheus: neither may hide what the other does."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.mixin.alerts import ALERTS
from ledgerops.mixin.promtests import STEP, series_named
from ledgerops.mixin.rule_files import READS
from ledgerops.mixin.site import Site
from ledgerops.model.records import Observation
from ledgerops.runtime.exposition import render
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.snapshot import QuerySnapshot, Snapshot, published
from tests.build import T0, spark_json
from tests.paths import ROOT
from tests.promtool import tried

FILES = [str(each) for each in sorted((ROOT / "alerts/rules").glob("*.yaml"))]
STARTED = {"id": "id-1", "runId": "run-1", "name": "orders"}
ENDED = {"id": "id-1", "runId": "run-1", "exception": "X: bad row", "errorClassOnException": "X"}


def assert_passed(folder, *tests, files=FILES):
    """Every rule of the files is evaluated at each moment of each test."""
    passed, said = tried(folder, {"rule_files": files, "evaluation_interval": "15s", "tests": list(tests)})
    assert passed, said


def firing(alert, at, *apps):
    return {
        "expr": f'count by (app) (ALERTS{{alertname="{alert}", alertstate="firing"}})',
        "eval_time": f"{at}s",
        "exp_samples": [{"labels": f'{{app="{app}"}}', "value": 1} for app in apps],
    }


def scraped(app, failed):
    """The samples of a driver whose only query runs, or has failed."""
    fleet = QueryRegistry(Diagnoser)
    seen = [("started", STARTED)]
    seen += [("progress", spark_json(batchId=batch, name="orders", id="id-1", runId="run-1")) for batch in range(3)]
    seen += [("terminated", ENDED)] * failed
    for number, (kind, data) in enumerate(seen):
        state = fleet.ingest(Observation(T0 + number, kind, "orders", data))
        assert state is not None
        fleet.judge(state, T0 + number)
    queries = {"orders": QuerySnapshot(state, fleet.view(state, T0 + 5), 500, pytest.fail)}
    text = render(published(Snapshot(T0 + 5, queries), SelfStats(), app=app), T0 + 5).decode()
    for family in parse_text(text):
        for sample in family.samples:
            labels = {**sample.labels, "job": "ledgerops", "instance": f"{app}:9464"}
            pairs = ", ".join(f'{key}="{value}"' for key, value in labels.items())
            yield f"{sample.name}{{{pairs}}}", sample.value


@pytest.mark.parametrize("alert", ["LedgerQueryDown", "LedgerQueryFailed"])
def test_an_outage_in_one_application_is_not_masked_by_its_namesake_in_another(tmp_path, alert):
    running = {app: dict(scraped(app, failed=False)) for app in "ab"}
    failed = dict(scraped("b", failed=True))
    series = {name: f"{value!r}x48" for name, value in running["a"].items()}
    for name in running["b"].keys() | failed.keys():
        first = f"{running['b'][name]!r}x8" if name in running["b"] else "_x9"
        series[name] = f"{first} {failed[name]!r}x40" if name in failed else f"{first} stale"

    given = [{"series": name, "values": values} for name, values in series.items()]
    asked = [firing(alert, 60), firing(alert, 400, "b")]
    assert_passed(tmp_path, {"interval": STEP, "input_series": given, "promql_expr_test": asked})


def of_application(series, app):
    labels = {"job": Site().job, "instance": f"{app}:9464", "query": "orders", "app": app}
    return [{"series": series_named(name, labels), "values": values} for name, values in series.items()]


def test_every_alert_about_a_query_names_the_application_that_it_is_true_of(tmp_path):
    """The series of a case in which it fires, beside those of one in which it stays quiet, in another application."""
    tests = []
    for alert in ALERTS:
        cases = [case for case in alert.cases if "app=" not in str(case.series)]
        speaks = next((case for case in cases if case.fires), None)
        quiet = [case for case in cases if case.shows == "stays quiet"]
        if not alert.of_query or speaks is None or not quiet:
            continue
        given = [*of_application(speaks.series, "b"), *of_application(quiet[0].series, "a")]
        asked = [firing(alert.name, speaks.at, "b")]
        tests.append({"name": alert.name, "interval": STEP, "input_series": given, "promql_expr_test": asked})

    assert len(tests) > 40
    for file in FILES:
        rules = Path(file).read_text("utf-8")
        mine = [test for test in tests if f"alert: {test['name']}\n" in rules]
        assert mine or file.endswith("observer.yaml")
        read = [other for other in FILES if Path(other).stem in READS.get(Path(file).stem, ())]
        assert_passed(tmp_path, *mine, files=[*read, file])
        tests = [test for test in tests if test not in mine]
    assert tests == []
