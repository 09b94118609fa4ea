"""Exporter absent: no driver answers Prometheus.

Meaning: Prometheus cannot scrape any driver of this job, and none told it before that its queries ended: the scrape
    configuration or the network is wrong, or drivers went before they had a query. If queries ran, LedgerDriverLost
    pages.
Impact: no other alert about queries can fire. The queries may be running well or not at all.
Diagnosis: 1. `up{job="JOB"}` shows which addresses Prometheus tried: none means that the targets are missing from its
    configuration.
    2. On the Prometheus host run `ledgerops status http://HOST:9464 --once`: an answer means that the scrape
    configuration is wrong.
    3. Without an answer, check whether the driver's process is alive.
Mitigation: if the driver is gone, start it again; its queries resume from their checkpoints. If only the endpoint is
    gone, the job itself is not affected: the driver's log says why (`port ... is in use`, `ledgerops is not attached`).
"""

from ledgerops.mixin.alerts.model import Alert, Case, of
from ledgerops.mixin.alerts.promql import ACTIVE, stopped
from ledgerops.mixin.site import Site


def _expression(site: Site) -> str:
    # absent() gives no labels here, and the texts, the links and Alertmanager's inhibition need the job
    absent = f'label_replace(absent({site.series("up")} == 1), "job", "{site.job}", "", "")'
    # what is pushed by OTLP has no target
    return f"{absent} unless on (job) ({stopped(site, 'job')}) unless on (job) {site.series('ledgerops_build_info')}"


ALERT = Alert(
    name="LedgerExporterAbsent", severity="warning",  # nobody knows whether anything is wrong with a query
    expression=_expression, hold=120.0,  # LedgerDriverLost comes first, and says which queries
    summary="No driver answers: no query is being watched.",
    description="No target of the scrape job {{ $labels.job }} has answered for two minutes.", runbook=__doc__,
    page="ledgerops-fleet", of_query=False, without=("query restarts",),
    cases=(
        Case("fires", "the only driver does not answer", {"up": "1x8 0x40"}, 300, True),
        Case("stays quiet", "one of two answers", {"up": "1x40", of("up", instance="other"): "0x40"}, 300, False),
        Case("stays quiet", "drivers push by OTLP", {"ledgerops_build_info": "1x40"}, 300, False),
        Case("stays quiet", "the only driver was stopped, and said so",
             {"up": "1x8 0x340", ACTIVE: "1x7 0 stale"}, 4000, False),
        Case("fires", "its only query failed, and it went", {"up": "1x8 0x340", ACTIVE: "1x7 0 stale",
             of("ledgerops_query_status", status="failed"): "0x7 1 stale"}, 4000, True),
        Case("fires", "one of two drivers was stopped, the other one did not say so",
             {"up": "1x8 0x340", ACTIVE: "1x7 0 stale", of(ACTIVE, instance="other"): "1x8 stale"}, 4000, True),
        Case("resolves", "it answers again", {"up": "1x8 0x20 1x40"}, 700, False),
        Case("series vanishes", "no target is known any more", {"up": "1x8 stale"}, 300, True),
    ),
)  # fmt: skip
