"""What an alert says when it is sent: Prometheus fills in the cause, the first step and the links."""

import re

import pytest

from ledgerops.mixin.rule_files import rule_files
from ledgerops.mixin.site import Site
from tests.promtool import tried
from tests.tables import cases

CAUSE = (
    'ledgerops_root_cause_info{job="ledgerops", instance="d:1", query="orders"%s, rule="slow-sink", severity="info", '
    'rank="%d", summary="Writing to the sink is slow.", action="Time one write at the target."}'
)


def promtool_said(folder, rules, series, alert, after):
    """What promtool prints of an alert, which it expects to be silent `after` some minutes."""
    (folder / rules).write_text(rule_files(Site())[rules], "utf-8")
    test = {
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": after, "alertname": alert, "exp_alerts": []}],
    }
    _, said = tried(folder, {"rule_files": [rules], "tests": [test]})
    return said


def described(folder, *series):
    """Description, cause and link of LedgerQueryDown for `orders`, which ended, by application."""
    given = dict.fromkeys(series, "1x40")
    for app in ("", ', app="a"'):
        for name, values in (("expected", "1x40"), ("active", "1x8 0x32")):
            given[f'ledgerops_query_{name}{{job="ledgerops", instance="d:1", query="orders"{app}}}'] = values
    said = promtool_said(folder, "symptoms.yaml", given, "LedgerQueryDown", "5m")
    texts = r'dashboard_url="(.*?)", description="(.*?)", first_step=".*?", root_cause="(.*?)", runbook'
    found = re.findall(rf"Labels:\{{(.*?)\}}\s+Annotations:\{{{texts}", said)
    return {"a" if 'app="a"' in labels else "": (text, cause, link) for labels, link, text, cause in found}


DOWN = "orders has no active run, so its results are getting older."
NAMED = "Writing to the sink is slow. Do first: Time one write at the target. (slow-sink)"


@cases(
    "series, first, second",
    ("no cause", [], "No cause is known yet.", "No cause is known yet."),
    ("a cause in one application", [CAUSE % ("", 1)], NAMED, "No cause is known yet."),
    ("a cause in the other", [CAUSE % (', app="a"', 1)], "No cause is known yet.", NAMED),
    ("not the first cause", [CAUSE % ("", 2)], "No cause is known yet.", "No cause is known yet."),
)
def test_an_alert_names_the_first_cause_of_its_own_application_and_what_to_do(tmp_path, series, first, second):
    found = described(tmp_path, *series)

    assert {app: texts[:2] for app, texts in found.items()} == {"": (DOWN, first), "a": (DOWN, second)}
    assert "&var-app=" not in found[""][2] and "&var-app=a&var-query=orders&" in found["a"][2]


def observer_said(folder, series, alert, after="6m"):
    return promtool_said(folder, "observer.yaml", series, alert, after)


def test_without_any_driver_the_alert_names_the_job(tmp_path):
    said = observer_said(tmp_path, {'up{job="ledgerops", instance="d:1"}': "1x8 0x40"}, "LedgerExporterAbsent")

    assert "No target of the scrape job ledgerops has answered for two minutes." in said
    assert re.search(r'Labels:\{alertname="LedgerExporterAbsent", job="ledgerops"', said), "Alertmanager compares it"
    assert "var-job=ledgerops&" in said


def test_a_sender_that_fails_is_named(tmp_path):
    labels = 'job="ledgerops-notify", instance="n:9465", sender="slack 1"'
    series = {
        f"ledgerops_notify_failed_total{{{labels}}}": "0x8 0+1x40",
        f"ledgerops_notify_delivered_total{{{labels}}}": "0x48",
    }

    said = observer_said(tmp_path, series, "LedgerNotifySenderFailing")

    assert "slack 1 of n:9465 has delivered nothing for ten minutes; " in said
    assert "var-job=ledgerops&" in said, "the dashboards know the drivers' job"


@pytest.mark.parametrize("after", ["6m", "2h"], ids=["soon", "hours later"])
def test_a_lost_driver_names_the_queries_that_nobody_runs(tmp_path, after):
    active = 'ledgerops_query_active{job="ledgerops", app="a", instance="%s", query="%s"}'
    series = {active % ("d:1", "orders"): "1x8 stale", active % ("d:1", "payments"): "1x8 stale",
              active % ("d:1", "old"): "0x8 stale", active % ("d:2", "refunds"): "1x500"}  # fmt: skip

    said = observer_said(tmp_path, series, "LedgerDriverLost", after)

    assert (
        "d:1 of ledgerops stopped answering while its queries ran or had failed (2): orders payments. Nothing has"
        in said
    )
