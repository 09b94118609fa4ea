"""Panels and marks whose expressions weigh several series, over scrapes that are made for the case."""

import re

import pytest

from ledgerops.mixin.dashboards.layout import MARKS
from ledgerops.mixin.dashboards.status import NUMBERS
from tests.mixin.dashboards.replayed import evaluated, filled, of
from tests.mixin.dashboards.test_waiting import PANELS, asked
from tests.promtool import tried
from tests.tables import cases

ACTIVE = "ledgerops_query_active"
STARTED = "ledgerops_query_start_timestamp_seconds"
[RESTARTS] = [mark for mark in MARKS if mark.name == "Restarts"]
AWAY = 200  # scrapes: a quarter of an hour


RUNS_SINCE_10 = of(STARTED, 10.0) | of(ACTIVE, 1.0)
AWAY_NOW = of(ACTIVE, 0.0)


@cases(
    "pages, marked",
    ("at once", [RUNS_SINCE_10] * 20 + [of(STARTED, 101.0)] * 5, True),
    ("after a long pause", [RUNS_SINCE_10] * 5 + [AWAY_NOW] * AWAY + [of(STARTED, 1010.0)] * 5, True),
    ("on another driver, after a long pause",
     [of(STARTED, 10.0, instance="old")] * 5 + [{}] * AWAY + [of(STARTED, 1010.0, instance="new")] * 5, True),
    ("the first start", [{}] * 5 + [of(STARTED, 25.0)] * 5, False),
    ("scrapes fail for long", [RUNS_SINCE_10] * 5 + [{}] * AWAY + [RUNS_SINCE_10] * 5, False),
    ("it ended", [RUNS_SINCE_10] * 5 + [AWAY_NOW] * AWAY, False),
    ("another query starts", [RUNS_SINCE_10] * 5 + [RUNS_SINCE_10 | of(STARTED, 40.0, query="other")] * 5, False),
    ("its namesake of another job starts", [RUNS_SINCE_10] * 5 + [RUNS_SINCE_10 | of(STARTED, 40.0, job="staging")] * 5,
     False),
    ("the younger of two drivers ends", [RUNS_SINCE_10 | of(STARTED, 20.0, instance="new")] * 5 + [RUNS_SINCE_10] * 5,
     False),
)  # fmt: skip
def test_a_restart_is_marked_however_long_the_query_was_away(tmp_path, pages, marked):
    assert bool(evaluated(tmp_path, pages, [filled(RESTARTS.expr)])) is marked


FIRES = 'ALERTS{alertname="A", alertstate="firing", severity="critical", job="j", query="q"}'
RUNS = 'ledgerops_query_start_timestamp_seconds{job="j", app="a", instance="i", query="q"}'
BEGINS = {  # twice within two hours; a sample every 15 s
    "Critical alerts": (FIRES, "_x163 1x7 stale _x180 1x400"),
    "Restarts": (RUNS, "10x163 2460x187 5280x400"),
}


@pytest.mark.parametrize("step", ["1m", "2m", "7m", "30m"])
@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.name)
def test_what_begins_is_marked_once_however_far_grafana_s_evaluations_are_apart(tmp_path, mark, step):
    series, values = BEGINS[mark.name]
    marks = f"sum(count_over_time(({filled(mark.expr, __interval=step)})[2h:{step}]))"
    case = {
        "interval": "15s", "input_series": [{"series": series, "values": values}],
        "promql_expr_test": [{"expr": marks, "eval_time": "2h", "exp_samples": [{"labels": "{}", "value": 2}]}],
    }  # fmt: skip
    passed, said = tried(tmp_path, {"tests": [case]})

    assert passed, said


EACH_ITS_OWN = [[of(STARTED, 10.0 + 40 * n, instance=f"{n}")] * 5 + [{}] * 3 for n in range(4)]


@cases(
    "pages, restarts",
    ("within a driver", [of(STARTED, 10.0)] * 5 + [of(STARTED, 35.0)] * 5, 1),
    ("each time on a new driver", [page for pages in EACH_ITS_OWN for page in pages], 3),
    ("the first start", [{}] * 5 + [of(STARTED, 25.0)] * 5, 0),
    ("scrapes fail for long", [RUNS_SINCE_10] * 5 + [{}] * AWAY + [RUNS_SINCE_10] * 5, 0),
    ("another query starts", [of(STARTED, 10.0) | of(STARTED, 40.0, query="other")] * 5, 0),
)
def test_restarts_are_counted_on_whichever_driver_they_are(tmp_path, pages, restarts):
    [panel] = [panel for _, panel in PANELS if panel.title == "Restarts in the last hour"]
    [count] = asked(panel)
    told = {f"({count}) == {restarts}", f"({count}) > {restarts}"}

    assert evaluated(tmp_path, pages, told) == {f"({count}) == {restarts}"}


FAILED = {
    **of(ACTIVE, 0.0, instance="old"),
    **of("ledgerops_query_status", 1.0, instance="old", status="failed"),
    **of("ledgerops_health_score", 40.0, instance="old"),
    **of("ledgerops_finding", 1.0, instance="old", rule="query-failed", severity="critical"),
    **of("ledgerops_root_cause", 1.0, instance="old", rule="query-failed"),
    **of(
        "ledgerops_root_cause_info", 1.0, instance="old", rule="query-failed", rank="1", severity="critical",
        summary="The query failed.", action="Read the log.",
    ),
}  # fmt: skip
WELL = {
    **of(ACTIVE, 1.0, instance="new"),
    **of("ledgerops_query_status", 1.0, instance="new", status="healthy"),
    **of("ledgerops_health_score", 100.0, instance="new"),
}


def number(expression):
    """What a failure is in a panel: its status, its severity, or that there is a cause."""
    if "query_status" in expression:
        return NUMBERS["failed"]
    return 3 if 'severity="critical"' in expression else 1


def failure(expression):
    """What says in a panel that a query failed: of a status its number; all others are there or not."""
    known = re.sub(r" or on \([^)]*\) label_replace.*", "", expression)  # without words for drivers that are silent
    return f"({known}) == {number(known)}"


FAILURE = {
    failure(expression): f"{page.uid}: {panel.title}"
    for page, panel in PANELS
    if panel.title.startswith(("Status over time", "Findings over time", "Root causes", "Queries, worst first"))
    for expression in asked(panel)
    if re.search("query_status|ledgerops_finding|root_cause_info", expression)
}


@cases(
    "page, shown",
    ("it failed, and runs nowhere", FAILED, True),
    ("another query runs", FAILED | of(ACTIVE, 1.0, query="other"), True),
    ("its namesake of another job runs", FAILED | of(ACTIVE, 1.0, job="staging"), True),
    ("it failed on one driver and runs on another", FAILED | WELL, False),
)
def test_a_failure_is_shown_until_another_driver_runs_the_query(tmp_path, page, shown):
    found = evaluated(tmp_path, [page] * 5, FAILURE)

    assert {FAILURE[each] for each in found} == (set(FAILURE.values()) if shown else set())


def test_what_a_driver_says_of_a_query_that_it_runs_is_shown_beside_another_driver(tmp_path):
    page = FAILED | of(ACTIVE, 1.0, instance="old") | WELL

    assert evaluated(tmp_path, [page] * 5, FAILURE) == set(FAILURE)
