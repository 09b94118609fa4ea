"""The alert of the rule observer-degraded: data about a driver's queries may be incomplete."""

from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.site import Site

WINDOW_SECONDS = 600.0
MAX_ERRORS = 3  # a collector that fails once asked a driver that was stopping
DROPPED = "ledgerops_listener_dropped_total"
ERRORS_TOTAL = "ledgerops_collector_errors_total"
RULE = "observer-degraded"
FINDING = f'ledgerops_finding{{rule="{RULE}"}}'
FAILED = f'{ERRORS_TOTAL}{{collector="tasks"}}'


def _expression(site: Site) -> str:
    window = site.window(WINDOW_SECONDS)
    dropped, failed = (
        f"sum by (job, app, instance) (increase({site.series(metric)}[{window}]))" for metric in (DROPPED, ERRORS_TOTAL)
    )
    matcher = f'rule="{RULE}"'
    found = f"max by (job, app, instance) ({site.series('ledgerops_finding', matcher)})"  # also of what comes late
    return f"{dropped} > 0 or {failed} > {MAX_ERRORS} or {found}"


ALERT = Alert(
    name="LedgerObserverDegraded", severity="warning", expression=_expression, hold=60.0,
    summary="Data about a driver's queries is missing, or comes late.",
    description="{{ $labels.instance }} lost events or samples within ten minutes, or Spark tells late what happens.",
    rule=RULE, page="ledgerops-resources", of_query=False, without=("query restarts",),
    cases=(
        Case("fires", "events are thrown away", {DROPPED: "0x8 0+5x40"}, 400, True),
        Case("fires", "a collector fails all the time", {FAILED: "0x8 0+1x40"}, 500, True),
        Case("fires", "Spark tells late what happens", {FINDING: "_x8 1x40"}, 500, True),
        Case("stays quiet", "another finding", {FINDING.replace(RULE, "another"): "1x48"}, 500, False),
        Case("stays quiet", "a collector failed once", {FAILED: "0x8 1x40", DROPPED: "0x48"}, 500, False),
        Case("resolves", "nothing for an hour", {DROPPED: "0x8 0+5x8 40x280"}, 4000, False),
        Case("series vanishes", "the driver ended", {DROPPED: "0x8 0+5x20 stale"}, 2000, False),
    ),
)  # fmt: skip
