"""Observer degraded: what ledgerops reports about a driver's queries may be incomplete.

Meaning: events were dropped because the worker could not keep up, or a collector, a rule or the recording is failing.
Impact: metrics have gaps and a verdict may be missing. The observed job is not affected.
Diagnosis: 1. `increase(ledgerops_listener_dropped_total[10m])`: above 0, the worker is overloaded; see
    `ledgerops_listener_queue_size`.
    2. `increase(ledgerops_collector_errors_total[10m])` by collector says what is failing.
    3. Run `ledgerops status http://INSTANCE --once`.
Mitigation: read the driver's log: one line that begins with `ledgerops` says what is failing. A full disk stops only
    the recording. For very many queries with very short triggers, make the trigger interval longer.
"""

from __future__ import annotations

from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.site import Site

WINDOW_SECONDS = 600.0
MAX_ERRORS = 3  # a collector that fails once asked a driver that was stopping
DROPPED = "ledgerops_listener_dropped_total"
ERRORS_TOTAL = "ledgerops_collector_errors_total"
FAILED = f'{ERRORS_TOTAL}{{collector="tasks"}}'


def _expression(site: Site) -> str:
    window = site.window(WINDOW_SECONDS)
    dropped, failed = (
        f"sum by (job, app, instance) (increase({site.series(metric)}[{window}]))" for metric in (DROPPED, ERRORS_TOTAL)
    )
    return f"{dropped} > 0 or {failed} > {MAX_ERRORS}"


ALERT = Alert(
    name="LedgerObserverDegraded",
    severity="warning",
    expression=_expression,
    hold=60.0,
    summary="Data about a driver's queries is missing.",
    description='{{ $labels.instance }} lost {{ $value | printf "%.0f" }} events or samples within ten minutes.',
    runbook=__doc__,
    rule="observer-degraded",
    page="ledgerops-resources",
    of_query=False,
    without=("query restarts",),
    cases=(
        Case("fires", "events are thrown away", {DROPPED: "0x8 0+5x40"}, 400, True),
        Case("fires", "a collector fails all the time", {FAILED: "0x8 0+1x40"}, 500, True),
        Case("stays quiet", "a collector failed once", {FAILED: "0x8 1x40", DROPPED: "0x48"}, 500, False),
        Case("resolves", "nothing for an hour", {DROPPED: "0x8 0+5x8 40x280"}, 4000, False),
        Case("series vanishes", "the driver ended", {DROPPED: "0x8 0+5x20 stale"}, 2000, False),
    ),
)
