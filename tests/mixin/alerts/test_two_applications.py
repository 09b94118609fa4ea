"""Two applications whose queries have equal names, on one Prometheus: neither may hide what the other does."""

from pathlib import Path

from ledgerops.mixin.alerts import ALERTS
from ledgerops.mixin.promtests import STEP, series_named
from ledgerops.mixin.rule_files import READS
from ledgerops.mixin.site import Site
from tests.paths import ROOT
from tests.promtool import tried

FILES = [str(each) for each in sorted((ROOT / "alerts/rules").glob("*.yaml"))]


def firing(alert, at, app):
    return {
        "expr": f'count by (app) (ALERTS{{alertname="{alert}", alertstate="firing"}})',
        "eval_time": f"{at}s",
        "exp_samples": [{"labels": f'{{app="{app}"}}', "value": 1}],
    }


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
        passed, said = tried(tmp_path, {"rule_files": [*read, file], "evaluation_interval": "15s", "tests": mine})
        assert passed, said
        tests = [test for test in tests if test not in mine]
    assert tests == []
