"""Panels whose expressions weigh several series, over scrapes that are made for the case."""

import pytest

from tests.dashboards.replayed import evaluated
from tests.dashboards.test_waiting import PANELS, asked

ACTIVE, ENDED = "ledgerops_query_active", "ledgerops_query_terminated_timestamp_seconds"
[FLEET_ENDED] = [panel for page, panel in PANELS if (page.uid, panel.title) == ("ledgerops-fleet", "Ended")]


def of(name, value, **labels):
    """A sample of the query `q`."""
    return {(name, tuple(sorted({"query": "q", **labels}.items()))): value}


OLD_ENDED = of(ACTIVE, 0.0, instance="old") | of(ENDED, 0.0, instance="old")
OLD_RUNS = of(ACTIVE, 1.0, instance="old")
NEW_RUNS = of(ACTIVE, 1.0, instance="new")


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        pytest.param(OLD_ENDED, True, id="it ended, and runs nowhere"),
        pytest.param(OLD_ENDED | of(ACTIVE, 1.0, query="other"), True, id="another query runs"),
        pytest.param(OLD_ENDED | of(ACTIVE, 1.0, job="staging"), True, id="its namesake of another job runs"),
        pytest.param(OLD_ENDED | NEW_RUNS, False, id="it ended on one driver and runs on another"),
        pytest.param(OLD_RUNS, False, id="it runs"),
    ],
)
def test_a_query_has_ended_where_no_driver_runs_it(tmp_path, page, shown):
    [expression] = asked(FLEET_ENDED)

    assert bool(evaluated(tmp_path, [page] * 5, [expression])) is shown
