"""The catalogue of alerts keeps the conventions that linters and people expect (monitoring mixins, mixtool)."""

import re
from typing import get_args

import pytest

from ledgerops.diagnosis.rules import RULES
from ledgerops.diagnosis.runbook import SECTIONS
from ledgerops.metrics import METRICS
from ledgerops.mixin.alerts import ALERTS, CAUSES, driver_lost
from ledgerops.mixin.alerts.integrity import CONFLICTS, IMBALANCE
from ledgerops.mixin.alerts.model import Behaviour
from ledgerops.mixin.rule_files import FILES, MAX_RULES, first_step, groups, texts
from ledgerops.mixin.site import Site
from ledgerops.notify.metrics import Counts
from ledgerops.runtime.exposition import TEXT
from tests.paths import ROOT

SITE = Site()
PAGE = Counts().page({"slack 1": (0, 0.0)}, TEXT).decode()
NOTIFY = set(re.findall(r"^# TYPE (\w+)", PAGE, re.MULTILINE))
of_each = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
KNOWN = {metric.name for metric in METRICS} | NOTIFY | {"up", "ALERTS"}


@of_each
def test_names_are_unique_and_short(alert):
    assert re.fullmatch(r"Ledger[A-Z][A-Za-z]+", alert.name) and len(alert.name) <= 40
    assert [other.name for other in ALERTS].count(alert.name) == 1


@of_each
def test_the_summary_is_a_constant_sentence_and_the_description_a_template(alert):
    assert re.fullmatch(r"[A-Z][^{}]*\.", alert.summary)
    assert "{{" in alert.description


@of_each
def test_the_text_of_an_alert_has_four_sections_and_that_of_a_rule_is_the_rule_s(alert):
    sections = [section for section in SECTIONS if f"\n{section}: " in alert.runbook]
    assert sections == ([] if alert.rule else list(SECTIONS))


@of_each
def test_it_is_held_for_two_scrapes_and_goes_on_for_a_trigger(alert):
    if alert in (IMBALANCE, CONFLICTS):  # facts, of which one scrape may be all that there is
        assert alert.hold == 0 and alert.keep >= SITE.scrape_seconds
    elif alert.name != "LedgerWatchdog":
        assert alert.hold >= 2 * SITE.scrape_seconds and alert.keep >= SITE.scrape_seconds


@of_each
def test_every_behaviour_is_shown(alert):
    assert {case.shows for case in alert.cases} | set(alert.without) == set(get_args(Behaviour))
    for case in alert.cases:
        if case.shows in ("stays quiet", "resolves"):
            assert not case.fires


@of_each
def test_every_selector_names_the_job_and_a_metric_that_is_exported(alert):
    expression, about_notify = alert.expression(SITE), alert.name.startswith("LedgerNotify")
    for name, matchers in re.findall(r"([a-z0-9_:]+)\{([^}]*)\}", expression):
        assert f'job="{SITE.notify_job if about_notify else SITE.job}"' in matchers
        assert name in KNOWN or name.startswith("query:"), name
    assert not re.search(r"\b(ledgerops_\w+)(?![\w{])", expression), "a metric without selector"


@of_each
def test_nothing_is_ranked_and_aggregations_keep_the_query(alert):
    expression = alert.expression(SITE)

    assert "topk" not in expression and "bottomk" not in expression
    if alert.of_query:
        assert all("query" in labels for labels in re.findall(r"(?:sum|max|min) by \(([^)]*)\)", expression))


@of_each
def test_every_link_is_an_annotation_of_its_own(alert):
    made = texts(alert, SITE)

    address = made["runbook_url"].removeprefix("https://github.com/ledgerops/ledgerops/blob/main/")
    assert (ROOT / address).is_file() and address == f"docs/problems/{alert.problem}.md"
    assert f"/d/{alert.page}?var-job=" in made["dashboard_url"]


def test_only_symptoms_page_and_every_rule_is_told():
    own = {alert.rule for alert in CAUSES if alert.severity != "info"}

    # no symptom shows these, or only once it is too late
    assert own == {"input-stopped", "state-snapshot-lag", "memory-leak", "state-growth", "unbounded-state"}
    assert {alert.severity for alert in CAUSES} == {"info", "warning"}
    assert {alert.rule for alert in ALERTS if alert.rule} == {rule.slug for rule in RULES}


def test_groups_are_small_and_quick():
    for name in FILES:
        for group in groups(name, SITE):
            assert len(group["name"]) <= 40 and len(group["rules"]) <= MAX_RULES
            assert SITE.evaluation_seconds <= 60


def test_every_alert_has_a_first_step_in_one_sentence():
    for alert in ALERTS:
        step = first_step(alert)
        assert step[:1].isupper() and step.endswith(".") and 10 < len(step) < 200, (alert.name, step)


def test_a_driver_that_is_lost_is_started_again_first():
    assert first_step(driver_lost.ALERT) == ("Start the driver again; its queries resume from their checkpoints.")
