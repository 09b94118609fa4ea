"""The alert of the rule observer-degraded: data about a driver's queries may be incomplete."""

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
    name="LedgerObserverDegraded", severity="warning", expression=_expression, hold=60.0,
    summary="Data about a driver's queries is missing.",
    description='{{ $labels.instance }} lost {{ $value | printf "%.0f" }} events or samples within ten minutes.',
    rule="observer-degraded", page="ledgerops-resources", of_query=False, without=("query restarts",),
    cases=(
        Case("fires", "events are thrown away", {DROPPED: "0x8 0+5x40"}, 400, True),
        Case("fires", "a collector fails all the time", {FAILED: "0x8 0+1x40"}, 500, True),
        Case("stays quiet", "a collector failed once", {FAILED: "0x8 1x40", DROPPED: "0x48"}, 500, False),
        Case("resolves", "nothing for an hour", {DROPPED: "0x8 0+5x8 40x280"}, 4000, False),
        Case("series vanishes", "the driver ended", {DROPPED: "0x8 0+5x20 stale"}, 2000, False),
    ),
)  # fmt: skip
