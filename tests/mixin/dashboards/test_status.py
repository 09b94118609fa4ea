"""Statuses and severities as panels number and colour them are those of the diagnosis."""

from typing import get_args

from ledgerops.mixin.dashboards.status import FOUND, NAMES, SEVERITIES, STATUSES, status
from ledgerops.model import finding
from tests.mixin.dashboards.replayed import evaluated
from tests.mixin.dashboards.test_waiting import filled


def test_each_status_that_there_is_has_a_number():
    assert sorted(name for name, _ in STATUSES) == sorted(get_args(finding.Status))
    assert [number for number, _ in NAMES] == [str(number) for number in range(len(STATUSES))]


def test_severities_are_numbered_from_the_least_and_are_all_there():
    assert tuple(name for name, _ in SEVERITIES) == finding.SEVERITIES
    assert dict(FOUND) == {"1": "cold:info", "2": "warn:warning", "3": "bad:critical"}


def test_a_query_has_the_number_of_its_status_and_no_other(tmp_path):
    names = [name for name, _ in STATUSES]
    page = {
        ("ledgerops_query_status", (("query", name), ("status", each))): float(name == each)
        for name in names
        for each in names
    }
    asked = {
        f"({filled(status().replace('$query', name))}) == {number}": (name, number)
        for name in names
        for number in range(len(names))
    }

    found = {asked[each] for each in evaluated(tmp_path, [page] * 5, asked)}
    assert found == {(name, number) for number, name in enumerate(names)}
