"""Driver lost: a driver stopped answering while its queries ran, and nothing has taken its place.

Meaning: Prometheus can no longer scrape this driver, or its target is gone. The last scrape showed running queries, or
    such as had failed. No driver runs them now, and at this address none of the same application runs others. A driver
    that is stopped tells Prometheus that its queries ended, if that scrapes every 15 s or more often: this one ended
    with the failure of a query, was killed, or hangs.
Impact: most likely nothing reads the input of these queries. Their results get older, and their backlog grows until the
    topic deletes rows. No other alert about these queries can fire.
Diagnosis: 1. Check whether the driver's process or pod is alive; its log ends with the reason.
    2. If it is alive, run `ledgerops status http://INSTANCE --once` on the Prometheus host. An answer
    means that the scrape configuration is wrong. Without one, only the endpoint is gone; the queries may be running.
    3. `up{job="JOB", instance="INSTANCE"}` is 0 while the target exists; no value means that it was removed.
Mitigation: start the driver again; its queries resume from their checkpoints. If it was killed on purpose, silence the
    alert: it ends by itself 12 hours after the last scrape.
"""

from ledgerops.mixin.alerts.model import Alert, Case, of
from ledgerops.mixin.alerts.promql import ACTIVE, LOST, of_ending

UP = "up"
NAMES = (
    f'{{{{ with printf "max by (query) ({LOST}{{job=%q, instance=%q}})" $labels.job $labels.instance | query }}}}'
    '{{ range sortByLabel "query" . }} {{ .Labels.query }}{{ end }}{{ end }}'
)
OTHER = {of(ACTIVE, app="other", instance="other:9464", query="other"): "1x400", of(UP, instance="other:9464"): "1x400"}
FAILED = of("ledgerops_query_status", status="failed")
ANOTHER_QUERY = of(ACTIVE, query="new")  # at the same address
ANOTHER_DRIVER = of(ACTIVE, instance="new:9464")

ALERT = Alert(
    name="LedgerDriverLost", severity="critical",
    expression=lambda site: f"count by (job, app, instance) ({site.series(LOST)})",
    hold=60.0,  # a driver that is started again may need as long until its queries run
    summary="A driver stopped answering while its queries ran or had failed.",
    description="{{ $labels.instance }} of {{ $labels.job }} stopped answering while its queries ran or had failed "
    f"({{{{ $value }}}}):{NAMES}. Nothing has taken its place.",
    runbook=__doc__, page="ledgerops-fleet", of_query=False,
    cases=(
        Case("fires", "one of two is silent for 90 s", {**OTHER, UP: "1x8 0x40", ACTIVE: "1x8 stale"}, 210, True),
        Case("fires", "its target is gone for long", {**OTHER, UP: "1x8 stale", ACTIVE: "1x8 stale"}, 3000, True),
        Case("stays quiet", "its queries had ended a minute before, half an hour ago",
             {**OTHER, UP: "1x48 stale", ACTIVE: "1x41 0x4 stale"}, 3000, False),
        Case("stays quiet", "it was stopped: the last scrape says that its queries ended",
             {**OTHER, UP: "1x8 0x40", ACTIVE: "1x7 0 stale", FAILED: "0x8 stale"}, 400, False),
        Case("fires", "its query failed, and the process ended with it",
             {**OTHER, UP: "1x8 0x40", ACTIVE: "1x7 0 stale", FAILED: "0x7 1 stale"}, 400, True),
        Case("fires", "hours ago",
             {**OTHER, UP: "1x8 0x400", ACTIVE: "1x7 0 stale", FAILED: "0x7 1 stale"}, 6000, True),
        Case("stays quiet", "it failed, and another driver runs the query",
             {**OTHER, UP: "1x8 0x400", ACTIVE: "1x7 0 stale", FAILED: "0x7 1 stale",
              ANOTHER_DRIVER: "_x12 1x400"}, 5000, False),
        Case("fires", "a query that reads all there is failed, and the process ended",
             {**OTHER, UP: "1x8 stale", ACTIVE: "1x7 0 stale", FAILED: "0x7 1 stale",
              of_ending(): "1x8 stale"}, 400, True),
        Case("stays quiet", "a driver with other queries is started at its address",
             {**OTHER, UP: "1x8 0x4 1x40", ACTIVE: "1x8 stale", ANOTHER_QUERY: "_x12 1x40"}, 600, False),
        Case("resolves", "a driver with other queries is started at its address after three minutes",
             {**OTHER, UP: "1x8 0x12 1x40", ACTIVE: "1x8 stale", ANOTHER_QUERY: "_x20 1x40"}, 600, False),
        Case("fires", "a driver of another application is started at its address",
             {**OTHER, UP: "1x8 0x4 1x40", ACTIVE: "1x8 stale", of(ACTIVE, app="b"): "_x12 1x40"}, 600, True),
        Case("fires", "a driver is started at its address, and no query",
             {**OTHER, UP: "1x8 0x4 1x40", ACTIVE: "1x8 stale"}, 600, True),
        Case("stays quiet", "what took its place an hour ago was stopped",
             {**OTHER, UP: "1x8 0x4 1x240 0x60", ACTIVE: "1x8 stale",
              ANOTHER_QUERY: "_x12 1x240 0x2 stale"}, 4500, False),
        Case("stays quiet", "the driver that took the query over an hour ago was stopped",
             {**OTHER, UP: "1x8 0x340", ACTIVE: "1x8 stale", ANOTHER_DRIVER: "_x12 1x240 0x2 stale"}, 4500, False),
        Case("fires", "the query was taken over and came back",
             {**OTHER, UP: "1x8 0x100 1x60 0x200", ACTIVE: "1x8 stale _x99 1x60 stale",
              ANOTHER_DRIVER: "_x12 1x90 0x6 stale"}, 3600, True),
        Case("fires", "its query ended on another driver before",
             {**OTHER, UP: "1x8 0x40", ACTIVE: "1x8 stale", of(ACTIVE, instance="old:9464"): "1x4 0x44"}, 400, True),
        Case("fires", "a query of the same name runs in another application",
             {**OTHER, UP: "1x8 0x40", of(ACTIVE, app="a"): "1x8 stale",
              of(ACTIVE, app="b", instance="b:9464"): "1x48"}, 400, True),
        Case("stays quiet", "it misses one scrape", {**OTHER, UP: "1x8 0x1 1x40", ACTIVE: "1x8 _ 1x40"}, 180, False),
        Case("stays quiet", "another driver took the query over",
             {**OTHER, UP: "1x8 0x40", ACTIVE: "1x8 stale", ANOTHER_DRIVER: "_x12 1x36"}, 400, False),
        Case("stays quiet", "its queries had ended", {**OTHER, UP: "1x8 0x40", ACTIVE: "1x4 0x4 stale"}, 400, False),
        Case("stays quiet", "it answers, and its query ended", {**OTHER, UP: "1x48", ACTIVE: "1x8 0x40"}, 400, False),
        Case("stays quiet", "its query processed what there was, and the process ended",
             {**OTHER, UP: "1x8 stale", ACTIVE: "1x8 stale", of_ending(): "1x8 stale"}, 400, False),
        Case("resolves", "it answers again", {**OTHER, UP: "1x8 0x20 1x40", ACTIVE: "1x8 stale _x20 1x40"}, 700, False),
        Case("series vanishes", "for under a minute", {**OTHER, UP: "1x8 stale", ACTIVE: "1x8 stale"}, 190, False),
        Case("query restarts", "with the driver, within a minute",
             {**OTHER, UP: "1x8 0x3 1x40", ACTIVE: "1x8 stale _x3 1x40"}, 300, False),
    ),
)  # fmt: skip
