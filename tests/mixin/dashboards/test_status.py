"""Statuses and severities as panels number and colour them are those of the diagnosis."""

from typing import get_args

from ledgerops.mixin.dashboards.status import DERIVED, FOUND, NAMES, NUMBERS, SEVERITIES, STATUSES, status
from ledgerops.mixin.site import Site, duration
from ledgerops.model import finding
from tests.mixin.dashboards.replayed import SCRAPE, evaluated, filled, of
from tests.tables import cases


def test_each_status_that_there_is_has_a_number():
    assert set(get_args(finding.Status)) <= set(STATUSES)
    assert set(STATUSES) - set(get_args(finding.Status)) <= set(DERIVED)
    assert [number for number, _ in NAMES] == [str(number) for number in range(len(STATUSES))]


def test_severities_are_numbered_from_the_least_and_are_all_there():
    assert tuple(name for name, _ in SEVERITIES) == finding.SEVERITIES
    assert dict(FOUND) == {"1": "cold:info", "2": "warn:warning", "3": "bad:critical"}


def test_a_query_has_the_number_of_its_status_and_no_other(tmp_path):
    names = [name for name in STATUSES if name not in DERIVED]
    pairs = [(name, each) for name in names for each in names]
    page = of("ledgerops_query_active", 0.0, query="failed")  # as its driver says
    for query, each in pairs:
        page |= of("ledgerops_query_status", float(query == each), query=query, status=each)
    asked = {
        f"({filled(status(), query=name)}) {sign} {NUMBERS[name]}": (name, sign)
        for name in names
        for sign in (("==", "!=") if name != "failed" else ("==",))  # it is lost once its driver is gone
    }

    found = {asked[each] for each in evaluated(tmp_path, [page] * 5, asked)}
    assert found == {(name, "==") for name in names}


def at_the_end(folder, pages, every=SCRAPE, **more):
    """Statuses at the last scrape: a query that was lost was healthy before, and in the end all series are stale."""
    step = duration(every)
    last = f"[{step}:{step}] @ end() offset {step}"
    asked = {f"last_over_time(({filled(status())}){last}) == {n}": name for name, n in NUMBERS.items()}
    return {asked[each] for each in evaluated(folder, pages, asked, every=every, **more)}


def a_query(status, **labels):
    return of("ledgerops_query_active", 1.0, **labels) | of("ledgerops_query_status", 1.0, status=status, **labels)


def finding_of(severity):
    return of("ledgerops_finding", 1.0, rule="slow-sink", severity=severity)


ENDED = of("ledgerops_query_active", 0.0)


@cases(
    "pages, expected",
    ("nothing was found", [a_query("healthy")] * 5, "healthy"),
    ("something worth knowing", [a_query("healthy") | finding_of("info")] * 5, "healthy"),
    ("healthy with a warning", [a_query("healthy") | finding_of("warning")] * 5, "at_risk"),
    ("a status that is bad itself", [a_query("stuck") | finding_of("critical")] * 5, "stuck"),
    ("the driver stopped answering", [a_query("healthy")] * 3 + [{}] * 4, "lost"),
    ("the driver stopped answering after the query had ended", [a_query("healthy")] * 3 + [ENDED] + [{}] * 4, None),
)
def test_what_a_driver_does_not_say_is_a_status_too(tmp_path, pages, expected):
    assert at_the_end(tmp_path, pages) == ({expected} - {None})


MINUTE = 60.0
HOURS_AGO = [{}] * 180  # minutes: longer than every scrape is read
HERE, THERE = a_query("healthy", app="here"), a_query("healthy", app="there")


@cases(
    "pages, expected",
    ("its driver is gone for ten minutes", [a_query("healthy")] * 20 + [{}] * 10, {"lost"}),
    ("its driver is gone for hours", [a_query("healthy")] * 20 + HOURS_AGO, {"lost"}),
    ("it failed, and its driver ended with it", [a_query("healthy")] * 20 + [a_query("failed") | ENDED] + [{}] * 10,
     {"lost"}),
    ("it ended an hour ago", [a_query("healthy")] * 4 + [a_query("stopped") | ENDED] * 60, {"stopped"}),
    ("it ended, and an hour later its driver", [a_query("healthy")] * 4 + [a_query("stopped") | ENDED] * 60 + HOURS_AGO,
     set()),
    ("it ended within the last step of its driver", [a_query("healthy")] * 4 + [a_query("stopped") | ENDED] + HOURS_AGO,
     set()),
    ("its namesake in another application runs on", [HERE | THERE] * 20 + [THERE] * 10, {"lost", "healthy"}),
    ("its namesake has run on for hours since", [HERE | THERE] * 20 + [THERE] * 180, {"lost", "healthy"}),
)  # fmt: skip
def test_a_query_is_lost_for_as_long_as_its_driver_is_remembered(tmp_path, pages, expected):
    site = Site(scrape_seconds=MINUTE, evaluation_seconds=MINUTE)

    assert at_the_end(tmp_path, pages, every=MINUTE, site=site) == expected
