"""Target down: one driver of several cannot be scraped.

Meaning: Prometheus knows this driver and does not reach it, while it reaches others.
Impact: what runs on that driver is not watched.
Diagnosis: `up{job="JOB", instance="INSTANCE"}`, and the page Targets of Prometheus for the error. From its host
    run `ledgerops status --once --url http://INSTANCE`.
Mitigation: start the driver again if it is gone; if it was taken away on purpose, take it out of the scrape
    configuration.
"""

from __future__ import annotations

from ledgerops.mixin.alerts.model import Alert, Case

ALERT = Alert(
    name="LedgerTargetDown",
    severity="warning",
    expression=lambda site: f"max by (job, instance) ({site.series('up')}) == 0",
    hold=60.0,
    summary="A driver does not answer.",
    description="Prometheus cannot scrape {{ $labels.instance }} of {{ $labels.job }}: its queries are not watched.",
    runbook=__doc__,
    page="ledgerops-fleet",
    of_query=False,
    without=("query restarts",),
    cases=(
        Case("fires", "it does not answer", {"up": "1x8 0x40"}, 300, True),
        Case("stays quiet", "it misses one scrape", {"up": "1x8 0x1 1x40"}, 180, False),
        Case("resolves", "it answers again", {"up": "1x8 0x20 1x40"}, 700, False),
        Case("series vanishes", "it is no longer a target", {"up": "1x8 stale"}, 300, False),
    ),
)
