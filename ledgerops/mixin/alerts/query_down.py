"""Query down: a query that should be running is not.

Meaning: the driver has run this query, or was configured to expect it (setting `expected_queries`), and it has no
    active run.
Impact: nothing reads its input. Its results get older, and the backlog grows until the topic deletes rows.
Diagnosis: 1. `ledgerops_query_status{app="APP",query="QUERY"} == 1` shows whether it failed or was stopped.
    2. `ledgerops_query_failures_total{app="APP",query="QUERY"}` shows with which error class.
    3. Run `ledgerops diagnose http://INSTANCE --query QUERY`; the driver's log has the whole exception.
Mitigation: start the query again with the same checkpoint. It continues where it ended, and nothing is lost while the
    topic still has the rows. If it was stopped on purpose, silence the alert: a driver remembers each query that it ran
    until it ends or attaches anew. One that it never ran goes with its name in `expected_queries`, read at the start.
"""

from ledgerops.mixin.alerts.model import Alert, Case, of
from ledgerops.mixin.alerts.promql import ACTIVE, EXPECTED, alive, worst

ALERT = Alert(
    name="LedgerQueryDown", severity="critical", hold=60.0,
    expression=lambda site: f"{worst(site, EXPECTED)} == 1 unless on (job, app, query) {alive(site)}",
    summary="A query that should be running is not.",
    description="{{ $labels.query }} has no active run, so its results are getting older.", names_cause=True,
    runbook=__doc__,
    inhibits=("LedgerQueryStuck", "LedgerFallingBehind", "LedgerTriggerOverrun", "LedgerFreshnessTicket"),
    cases=(
        Case("fires", "it ended in one application while its namesake in another runs",
             {of(EXPECTED, app="b", instance="b:1"): "1x40", of(ACTIVE, app="b", instance="b:1"): "1x8 0x32",
              of(EXPECTED, app="a", instance="a:1"): "1x40", of(ACTIVE, app="a", instance="a:1"): "1x40"}, 300, True),
        Case("stays quiet", "it moved to another driver of its application",
             {of(EXPECTED, app="a", instance="a:1"): "1x40", of(ACTIVE, app="a", instance="a:1"): "1x8 0x32",
              of(EXPECTED, app="a", instance="a:2"): "_x8 1x32",
              of(ACTIVE, app="a", instance="a:2"): "_x8 1x32"}, 300, False),
        Case("fires", "the run ended and none began", {EXPECTED: "1x40", ACTIVE: "1x8 0x32"}, 300, True),
        Case("stays quiet", "a run is on", {EXPECTED: "1x40", ACTIVE: "1x40"}, 300, False),
        Case("stays quiet", "a job that processes the available rows ended by itself",
             {EXPECTED: "1x8 stale", ACTIVE: "1x8 0x32"}, 300, False),
        Case("resolves", "a run began again", {EXPECTED: "1x60", ACTIVE: "1x8 0x12 1x40"}, 600, False),
        Case("series vanishes", "the driver is gone: LedgerDriverLost fires",
             {EXPECTED: "1x20 stale", ACTIVE: "1x20 stale"}, 500, False),
        Case("query restarts", "half a minute without a run", {EXPECTED: "1x40", ACTIVE: "1x8 0x1 1x31"}, 180, False),
    ),
)  # fmt: skip
