"""Statuses and severities as panels number and colour them are those of the diagnosis."""

from typing import get_args

import pytest

from ledgerops.mixin.dashboards.status import DERIVED, FOUND, NAMES, NUMBERS, SENTENCES, SEVERITIES, STATUSES, status
from ledgerops.mixin.site import duration
from ledgerops.model import finding
from tests.mixin.dashboards.replayed import SCRAPE, evaluated
from tests.mixin.dashboards.test_waiting import filled


def test_each_status_that_there_is_has_a_number():
    names = [name for name, _ in STATUSES]

    assert set(get_args(finding.Status)) <= set(names)
    assert set(names) - set(get_args(finding.Status)) <= set(DERIVED)
    assert set(SENTENCES) == set(names)
    assert [number for number, _ in NAMES] == [str(number) for number in range(len(STATUSES))]


def test_severities_are_numbered_from_the_least_and_are_all_there():
    assert tuple(name for name, _ in SEVERITIES) == finding.SEVERITIES
    assert dict(FOUND) == {"1": "cold:info", "2": "warn:warning", "3": "bad:critical"}


def test_a_query_has_the_number_of_its_status_and_no_other(tmp_path):
    names = [name for name, _ in STATUSES if name not in DERIVED]
    page = {
        ("ledgerops_query_status", (("query", name), ("status", each))): float(name == each)
        for name in names
        for each in names
    }
    everybody, chosen = 'query=~".+"', {name: f'query="{name}"' for name in names}
    asked = {
        f"({filled(status()).replace(everybody, chosen[name])}) {sign} {NUMBERS[name]}": (name, sign)
        for name in names
        for sign in ("==", "!=")
    }

    found = {asked[each] for each in evaluated(tmp_path, [page] * 5, asked)}
    assert found == {(name, "==") for name in names}


def a_query(status, **more):
    return {
        ("ledgerops_query_active", (("query", "q"),)): 1.0,
        ("ledgerops_query_status", (("query", "q"), ("status", status))): 1.0,
        **more,
    }


def finding_of(severity):
    return {("ledgerops_finding", (("query", "q"), ("rule", "slow-sink"), ("severity", severity))): 1.0}


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        pytest.param([a_query("healthy")] * 5, "healthy", id="nothing was found"),
        pytest.param([a_query("healthy") | finding_of("info")] * 5, "healthy", id="something worth knowing"),
        pytest.param([a_query("healthy") | finding_of("warning")] * 5, "at_risk", id="healthy with a warning"),
        pytest.param([a_query("stuck") | finding_of("critical")] * 5, "stuck", id="a status that is bad itself"),
        pytest.param([a_query("healthy")] * 3 + [{}] * 4, "lost", id="the driver stopped answering"),
        pytest.param(
            [a_query("healthy")] * 3 + [{("ledgerops_query_active", (("query", "q"),)): 0.0}] + [{}] * 4,
            None,
            id="the driver stopped answering after the query had ended",
        ),
    ],
)
def test_what_a_driver_does_not_say_is_a_status_too(tmp_path, pages, expected):
    numbers = range(len(STATUSES))
    # of the last scrape only: a query that was lost was healthy before, and at the end of the test all series are stale
    step = duration(SCRAPE)
    last = f"[{step}:{step}] @ end() offset {step}"
    asked = {f"last_over_time(({filled(status())}){last}) == {number}": number for number in numbers}

    found = evaluated(tmp_path, pages, asked)
    assert {STATUSES[asked[each]][0] for each in found} == ({expected} - {None})
