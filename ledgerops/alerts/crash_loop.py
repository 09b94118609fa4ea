"""Crash loop: a query fails, is started again, and fails again.

Meaning: at least three runs of the query ended with an exception within a quarter of an hour, and something starts
    it anew.
Impact: no batch is committed, or few are. Each start costs cores that other queries want, and results grow old.
Diagnosis: `sum by (error_class) (ledgerops_query_failures_total{query="QUERY"})` says with what it fails. The same
    batch again and again means that a row in it, or the sink, cannot be dealt with.
    Run `ledgerops diagnose --query QUERY` for the exception and the batch.
Mitigation: stop whatever starts it. Mend the cause: a poison record belongs in a dead-letter output, a full or
    unreachable sink must come back. Then start it with the same checkpoint. Never delete the checkpoint to get past a
    batch: that loses state and place.
"""

from __future__ import annotations

from ledgerops.alerts.model import Alert, Case
from ledgerops.alerts.promql import BY, CAUSE
from ledgerops.alerts.site import Site

FAILURES = 3  # one crash is LedgerQueryDown's; three in a quarter of an hour are a loop
WINDOW = 900.0


def _expression(site: Site) -> str:
    failures = site.series("ledgerops_query_restarts_total")
    return f"sum {BY} (increase({failures}[{site.window(WINDOW)}])) >= {FAILURES} and on (job, query) {_failed(site)}"


def _failed(site: Site) -> str:
    # a failure's series begins with its first failure, so its value counts and not its increase
    return f"sum {BY} ({site.series('ledgerops_query_failures_total')}) >= {FAILURES}"


ALERT = Alert(
    name="LedgerCrashLoop",
    severity="critical",
    expression=_expression,
    hold=30.0,
    summary="A query fails again and again.",
    description=(
        '{{ $labels.query }} was started anew {{ $value | printf "%.0f" }} times in a quarter of an hour, '
        f"after failures. {CAUSE}"
    ),
    runbook=__doc__,
    rule="crash-loop",
    inhibits=("LedgerQueryDown", "LedgerFreshnessTicket"),
    cases=(
        Case(
            "fires", "four failures in five minutes",
            {
                "ledgerops_query_restarts_total": "0x4 1x4 2x4 3x4 4x30",
                'ledgerops_query_failures_total{error_class="X"}': "_x4 1x4 2x4 3x4 4x30",
            }, 360, True,
        ),
        Case(
            "stays quiet", "restarts without a failure: deployments",
            {"ledgerops_query_restarts_total": "0x4 1x4 2x4 3x4 4x30"}, 360, False,
        ),
        Case(
            "resolves", "the loop ended long ago",
            {
                "ledgerops_query_restarts_total": "0x4 1x4 2x4 3x4 4x200",
                'ledgerops_query_failures_total{error_class="X"}': "_x4 1x4 2x4 3x4 4x200",
            }, 1800, False,
        ),
        Case(
            "series vanishes", "the driver is gone",
            {
                "ledgerops_query_restarts_total": "0x4 1x4 2x4 3x4 4x4 stale",
                'ledgerops_query_failures_total{error_class="X"}': "_x4 1x4 2x4 3x4 4x4 stale",
            }, 1800, False,
        ),
        Case(
            "query restarts", "one failure, one restart",
            {
                "ledgerops_query_restarts_total": "0x8 1x40",
                'ledgerops_query_failures_total{error_class="X"}': "_x8 1x40",
            }, 360, False,
        ),
    ),
)  # fmt: skip
