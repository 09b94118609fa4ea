"""Target down: one driver of several does not answer Prometheus.

Meaning: Prometheus knows this driver and cannot scrape it, while other drivers answer. In its last answer it did not
    say that its queries had ended, as a driver that is stopped does.
Impact: the queries of that driver are not being watched. They may be running well or not at all. If it ran queries
    that no other driver runs, LedgerDriverLost pages.
Diagnosis: 1. `up{job="JOB", instance="INSTANCE"}` shows since when.
    2. The Targets page of Prometheus shows the error.
    3. On the driver's host run `ledgerops status http://INSTANCE --once`.
Mitigation: if the driver is gone, start it again; its queries resume from their checkpoints. If it was removed on
    purpose, remove it from the scrape configuration.
"""

from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import ACTIVE, of_ending, stopped
from ledgerops.mixin.site import Site


def _expression(site: Site) -> str:
    down = f"max by (job, instance) ({site.series('up')}) == 0"
    return f"{down} unless on (job, instance) ({stopped(site, 'job, instance')})"


ALERT = Alert(
    name="LedgerTargetDown", severity="warning", expression=_expression,
    hold=120.0,  # LedgerDriverLost comes first, and says which queries
    summary="A driver does not answer.",
    description="Prometheus cannot scrape {{ $labels.instance }} of {{ $labels.job }}: its queries are not watched.",
    runbook=__doc__, page="ledgerops-fleet", of_query=False, without=("query restarts",),
    cases=(
        Case("fires", "its only query reads all there is, and ends", {"up": "1x8 0x40", ACTIVE: "1x8 stale",
             of_ending(): "1x8 stale"}, 300, True),
        Case("fires", "it does not answer", {"up": "1x8 0x40"}, 300, True),
        Case("fires", "its queries ran", {"up": "1x8 0x40", ACTIVE: "1x8 stale"}, 300, True),
        Case("stays quiet", "it was stopped: the last scrape says that its queries ended",
             {"up": "1x8 0x340", ACTIVE: "1x7 0 stale"}, 4000, False),
        Case("stays quiet", "it was stopped half a day ago", {"up": "1x8 0x3300", ACTIVE: "1x7 0 stale"}, 48600, False),
        Case("stays quiet", "it misses one scrape", {"up": "1x8 0x1 1x40"}, 180, False),
        Case("resolves", "it answers again", {"up": "1x8 0x20 1x40"}, 700, False),
        Case("series vanishes", "it is no longer a target", {"up": "1x8 stale"}, 300, False),
    ),
)  # fmt: skip
