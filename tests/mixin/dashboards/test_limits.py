"""Panels change colour where alerts and rules speak, also at a site with limits of its own."""

import json
import re

import pytest

from ledgerops.agent import queue
from ledgerops.diagnosis.limits import MOSTLY
from ledgerops.load.generator import validity
from ledgerops.mixin import thresholds
from ledgerops.mixin.alerts import crash_loop
from ledgerops.mixin.alerts.freshness import PAGE
from ledgerops.mixin.dashboards.build import page_json
from ledgerops.mixin.dashboards.model import BAD, GOOD, UNKNOWN, WARN, Panel
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.dashboards.panels import limit
from ledgerops.mixin.dashboards.styles import LOWEST
from ledgerops.mixin.site import Site
from tests.mixin.dashboards import lint

SITE = Site()
OURS = Site(freshness_seconds=30.0, freshness_objective=0.95, retention_seconds=600.0)


def panels(uid, site):
    """By title, without the limit that stands in it."""
    [page] = [page for page in PAGES if page.uid == uid]
    return {panel["title"].partition(" · ")[0]: panel for panel in lint.panels(json.loads(page_json(page, site)))}


def steps(panel):
    return [(step["value"], step["color"]) for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]


GREY = (None, UNKNOWN)


@pytest.mark.parametrize(
    ("uid", "title", "expected"),
    [
        ("ledgerops-fleet", "Longest lag", [GREY, (LOWEST, GOOD), (15, WARN), (30, BAD)]),
        ("ledgerops-slo", "Freshness, five oldest", [GREY, (LOWEST, GOOD), (30, BAD)]),
        ("ledgerops-query", "Time until rows are deleted", [GREY, (LOWEST, BAD), (1, WARN), (600, GOOD)]),
        ("ledgerops-slo", "Error budget left, ten lowest", [GREY, (LOWEST, BAD), (0, WARN), (0.5, GOOD)]),
        ("ledgerops-resources", "Disk free, ten lowest", [GREY, (LOWEST, WARN), (0.1, GOOD)]),
        ("ledgerops-resources", "Memory by process, five largest", [GREY]),
    ],
)
def test_a_limit_is_the_sites_and_says_which_side_is_bad(uid, title, expected):
    assert steps(panels(uid, OURS)[title]) == expected


@pytest.mark.parametrize(
    ("uid", "title", "said"),
    [
        ("ledgerops-fleet", "Longest lag", "good below 15 s"),
        ("ledgerops-resources", "Disk free, ten lowest", "good from 10 %"),
        ("ledgerops-resources", "Failed tasks", "good: 0"),
        ("ledgerops-query", "Restarts in the last hour", "good below 1"),
        ("ledgerops-resources", "Memory by process, five largest", ""),
        ("ledgerops-fleet", "Missing longest", ""),
    ],
)
def test_the_title_says_where_good_ends(uid, title, said):
    assert panels(uid, OURS)[title]["title"].partition(" · ")[2] == said


def test_the_budget_is_that_of_the_objective():
    found = panels("ledgerops-slo", OURS)

    assert all(target["expr"].endswith(" / 0.05") for target in found["Burn rate of the chosen queries"]["targets"])
    assert steps(found["Bad time in the last hour, five largest"])[-1] == (pytest.approx(0.72), BAD)


def test_the_alerts_speak_at_the_same_values():
    assert f"> {thresholds.fast_burn(OURS):g}" in PAGE.expression(OURS)
    assert (
        thresholds.stale_seconds(OURS) == OURS.freshness_seconds
        and thresholds.retention_seconds(OURS) == OURS.retention_seconds
    )


def test_limits_of_what_is_judged_elsewhere_are_those_that_it_is_judged_by():
    assert (thresholds.LATE_SECONDS, thresholds.SENT_SHARE) == (validity.LATE_BUDGET, validity.MIN_ACKNOWLEDGED_SHARE)
    assert thresholds.WAITING_EVENTS == MOSTLY * queue.MAX_EVENTS


def test_a_column_has_its_own_unit_colours_and_words():
    columns = lint.columns(panels("ledgerops-fleet", OURS)["Queries, worst first"])

    assert columns["lag"]["unit"] == "s"
    assert columns["lag"]["thresholds"]["steps"][-1] == {"value": 30, "color": BAD}
    assert columns["status"]["mappings"][0]["options"]["7"]["text"] == "falling behind"
    assert columns["busy"]["custom.cellOptions"] == {"type": "gauge", "mode": "basic"}
    assert "thresholds" not in columns["clears in"]


def contradictions(panel):
    """Numbers that a text calls good below or above, and at which nothing changes colour."""
    drawn = [limit(value, SITE) for value in (panel.warn, panel.bad) if value is not None]
    drawn += [limit(getattr(target, side, None), SITE) for target in panel.targets for side in ("warn", "bad")]
    drawn += [thresholds.BUSY] if panel.title == "Pressure and busy" else []  # whose lines are those of the pressure
    found = re.findall(r"(?:below|above) ([\d.]*\d)(?: (%|ms))?", panel.help.partition("Good: ")[2])
    said = [float(number) / {"%": 100, "ms": 1000}.get(unit, 1) for number, unit in found]
    return [number for number in said if number not in (pytest.approx(each) for each in drawn if each is not None)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.uid)
def test_a_text_calls_good_what_is_not_coloured(page):
    assert {panel.title: found for row in page.rows for panel in row.panels if (found := contradictions(panel))} == {}


@pytest.mark.parametrize(
    ("good", "found"),
    [("below 20 %.", [0.2]), ("above 0.5 ms", [0.0005]), ("below 70 %; above 100 % it grows", []), ("0.", [])],
)
def test_a_text_that_contradicts_would_be_found(good, found):
    assert contradictions(Panel("", (), "percentunit", f"Above 3. Good: {good}", warn=0.7, bad=1.0)) == found


def test_restarts_are_bad_from_those_on_that_the_crash_loop_asks_for():
    bad = steps(panels("ledgerops-query", OURS)["Restarts in the last hour"])[-1]

    assert bad == (2, BAD)
    assert f"[15m])) >= {bad[0]})" in crash_loop.ALERT.expression(OURS)


@pytest.mark.parametrize("page", ["ledgerops-query", "ledgerops-state"])
def test_a_page_of_one_query_shows_it_whatever_signs_its_name_has(page):
    """Grafana takes the value of such a variable as it is: as a pattern `orders (v2)` would match nothing."""
    asked = [target["expr"] for panel in panels(page, OURS).values() for target in panel["targets"]]
    assert any('query="$query"' in each for each in asked)
    assert not any('query=~"$query"' in each for each in asked)
