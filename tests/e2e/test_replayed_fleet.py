"""Recorded drills as a fleet of drivers before a real Prometheus: what headlines and tables show is right, as text."""

import pytest

from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.dashboards.panels import expression, lettered
from tests.mixin.dashboards.fleet_replay import SITE, Fleet, shown
from tests.mixin.dashboards.replayed import filled
from tests.programs import until

pytestmark = pytest.mark.timeout(600)

PANELS = {f"{page.uid}/{panel.title}": panel for page in PAGES for row in page.rows for panel in row.panels}
LOST = "ordinary"  # its driver stops answering
LOST_AFTER = 60.0  # seconds: its queries have begun
EXPECTED = {"LedgerQueryFailed", "LedgerTargetDown", "LedgerDriverLost"}  # alerts


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    drivers = Fleet(tmp_path_factory.mktemp("fleet"), ("burst", "crash", "overload", LOST), LOST, LOST_AFTER)
    try:
        yield drivers.prometheus
    finally:
        drivers.close()


def rows(prometheus, place, **variables):
    return shown(prometheus, PANELS[f"ledgerops-{place}"], **variables)


@pytest.fixture(scope="module")
def incident(fleet):
    """The fleet once one query has failed and the queries of one driver are lost, and alerts have fired for both."""

    def known():
        statuses = {row.get("status") for row in rows(fleet, "fleet/Queries, worst first")}
        alerts = {row.get("alert") for row in rows(fleet, "slo/Firing alerts, critical first")}
        return {"lost", "failed"} <= statuses and alerts >= EXPECTED

    until(known, 300, "a failed query, lost queries and their alerts")
    return fleet


def test_every_target_of_every_page_is_evaluated_without_an_error(fleet):
    """Also those that have no data here; what is wrong in an expression is an error of Prometheus."""
    for page in PAGES:
        for panel in (panel for row in page.rows for panel in row.panels):
            for _, target in lettered(panel):
                fleet.ask(filled(expression(target, SITE)))


def test_headlines_say_how_many_run_and_name_what_is_missing(incident):
    running = {row["name"]: int(row["value"]) for row in rows(incident, "fleet/Queries running")}
    [missing] = rows(incident, "fleet/Missing longest")
    [alert] = rows(incident, "fleet/Critical alert firing longest")
    table = rows(incident, "fleet/Queries, worst first")
    away = {row["query"] for row in table if row["status"] in ("lost", "failed")}

    assert 0 < running["running"] < running["expected"]
    assert running["expected"] - running["running"] == len(away)
    assert missing["name"] in away and missing["value"].endswith(" s")
    assert alert["name"].startswith("Ledger") and alert["value"].endswith(" s")


def test_the_table_lists_the_worst_first_with_cause_and_first_step_and_each_query_once(incident):
    panel = PANELS["ledgerops-fleet/Queries, worst first"]
    table = rows(incident, "fleet/Queries, worst first")
    statuses = [row["status"] for row in table]
    order = [word.partition(":")[2] for _, word in panel.targets[0].names]

    assert statuses == sorted(statuses, key=order.index, reverse=True)
    assert len({(row["query"], row["driver"]) for row in table}) == len(table)
    [failed] = [row for row in table if row["status"] == "failed"]
    assert failed["cause"] == "The query failed with an exception."
    assert failed["do first"] == "Read the rows of the failed batch and find the value."
    assert {row["since"][-2:] for row in table if row["status"] in ("lost", "failed")} == {" s"}


def test_firing_alerts_are_listed_critical_first_each_with_its_age(incident):
    table = rows(incident, "slo/Firing alerts, critical first")
    severities = [row["severity"] for row in table]

    assert severities == sorted(severities, key=("critical", "warning", "info").index)
    assert {row["alert"] for row in table} >= EXPECTED
    assert all(row["firing for"].endswith(" s") for row in table)
    assert "LedgerWatchdog" not in {row["alert"] for row in table}


def test_the_verdict_on_a_query_is_a_sentence_with_what_to_do(incident):
    table = rows(incident, "fleet/Queries, worst first")
    query = {row["status"]: row["query"] for row in table}

    assert rows(incident, "query/Verdict", query=query["failed"]) == [
        {
            "name": "The query failed with an exception. Read the rows of the failed batch and find the value.",
            "value": "critical",
        }
    ]
    assert rows(incident, "query/Verdict", query=query["lost"]) == [
        {"name": "", "value": "Lost: it stopped reporting without having ended."}
    ]
