"""Exporter absent: nothing that watches queries can be scraped.

Meaning: Prometheus reaches no driver of this job: the driver is gone, its port is closed, or the network is.
Impact: every other alert about queries is blind. The queries may run well or may be down: nobody knows.
Diagnosis: `up{job="JOB"}` says which addresses were tried. From the host of Prometheus run
    `ledgerops status --once --url http://HOST:9464`. If the port answers there, look at the scrape configuration.
Mitigation: start the driver again if it is gone (its checkpoints go on where they were). If only the endpoint is gone,
    the job is not touched: the driver's log says why in a line that begins with `ledgerops`.
"""

from __future__ import annotations

from ledgerops.mixin.alerts.model import Alert, Case

ALERT = Alert(
    name="LedgerExporterAbsent",
    severity="critical",
    expression=lambda site: f"absent({site.series('up')} == 1)",
    hold=60.0,
    summary="No driver answers: no query is being watched.",
    description="No target of the scrape job {{ $labels.job }} has answered for a minute.",
    runbook=__doc__,
    page="ledgerops-fleet",
    of_query=False,
    without=("query restarts",),
    cases=(
        Case("fires", "the only driver does not answer", {"up": "1x8 0x40"}, 300, True),
        Case("stays quiet", "one of two answers", {"up": "1x40", 'up{instance="other"}': "0x40"}, 300, False),
        Case("resolves", "it answers again", {"up": "1x8 0x20 1x40"}, 700, False),
        Case("series vanishes", "no target is known any more", {"up": "1x8 stale"}, 300, True),
    ),
)
