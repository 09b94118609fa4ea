"""Query down: a query that should run does not.

Meaning: the driver has run this query, or was told to expect it (setting `expected_queries`), and no run of it is on.
Impact: nothing reads its input. Its results are as old as the alert, and the backlog grows until the topic's retention.
Diagnosis: `ledgerops_query_status{query="QUERY"} == 1` says whether it failed or was stopped, and
    `ledgerops_query_failures_total{query="QUERY"}` with which error class.
    Run `ledgerops diagnose --query QUERY`; the driver's log holds the whole exception.
Mitigation: start the query again with the same checkpoint: it goes on where it ended, nothing is lost while the topic
    keeps the rows. A query that was stopped on purpose: silence the alert for it, or take it out of `expected_queries`.
"""

from __future__ import annotations

from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import CAUSE, alive, worst
from ledgerops.mixin.site import Site


def _expression(site: Site) -> str:
    return f"{worst(site, 'ledgerops_query_expected')} == 1 unless on (job, app, query) {alive(site)}"


ALERT = Alert(
    name="LedgerQueryDown",
    severity="critical",
    expression=_expression,
    hold=60.0,
    summary="A query that should be running is not.",
    description=f"{{{{ $labels.query }}}} has no active run, so its results are getting older. {CAUSE}",
    runbook=__doc__,
    inhibits=("LedgerQueryStuck", "LedgerFallingBehind", "LedgerTriggerOverrun", "LedgerFreshnessTicket"),
    cases=(
        Case(
            "fires", "the run ended and none began",
            {"ledgerops_query_expected": "1x40", "ledgerops_query_active": "1x8 0x32"}, 300, True,
        ),
        Case(
            "stays quiet", "a run is on",
            {"ledgerops_query_expected": "1x40", "ledgerops_query_active": "1x40"}, 300, False,
        ),
        Case(
            "stays quiet", "a job that works off what is there ended by itself",
            {"ledgerops_query_expected": "1x8 stale", "ledgerops_query_active": "1x8 0x32"}, 300, False,
        ),
        Case(
            "resolves", "a run began again",
            {"ledgerops_query_expected": "1x60", "ledgerops_query_active": "1x8 0x12 1x40"}, 600, False,
        ),
        Case(
            "series vanishes", "the driver is gone: LedgerExporterAbsent speaks",
            {"ledgerops_query_expected": "1x20 stale", "ledgerops_query_active": "1x20 stale"}, 500, False,
        ),
        Case(
            "query restarts", "half a minute without a run",
            {"ledgerops_query_expected": "1x40", "ledgerops_query_active": "1x8 0x1 1x31"}, 180, False,
        ),
    ),
)  # fmt: skip
