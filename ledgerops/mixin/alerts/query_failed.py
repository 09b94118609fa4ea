"""The alert of the rule query-failed: a run ended with an exception, and none is on."""

from ledgerops.mixin.alerts.model import Alert, Case, of
from ledgerops.mixin.alerts.promql import ACTIVE, BY, EXPECTED, HAS_FAILED, STATUS, alive, worst
from ledgerops.mixin.site import Site

FAILED = of(STATUS, status="failed")


def _expression(site: Site) -> str:
    # a query that processed all there was, and failed once before that, is expected no more
    expected = f"{worst(site, EXPECTED)} == 1"
    # one that was stopped since has not failed, whatever happened last week
    last = f"max {BY} (max without (status) ({site.series(STATUS, HAS_FAILED)})) == 1"
    return f"{last} and on (job, app, query) {expected} unless on (job, app, query) {alive(site)}"


ALERT = Alert(
    name="LedgerQueryFailed", severity="critical", expression=_expression, hold=30.0,
    summary="A query failed and is not running.",
    description="{{ $labels.query }} failed and has no active run.", names_cause=True, rule="query-failed",
    inhibits=("LedgerQueryDown", "LedgerQueryStuck", "LedgerFallingBehind", "LedgerFreshnessTicket"),
    cases=(
        Case("fires", "it failed in one application while its namesake in another runs",
             {of(ACTIVE, app="b", instance="b:1"): "1x8 0x40", of(EXPECTED, app="b", instance="b:1"): "1x48",
              of(STATUS, app="b", instance="b:1", status="failed"): "0x8 1x40",
              of(ACTIVE, app="a", instance="a:1"): "1x48", of(EXPECTED, app="a", instance="a:1"): "1x48"}, 300, True),
        Case("fires", "it failed and stays down",
             {ACTIVE: "1x8 0x40", EXPECTED: "1x48", FAILED: "0x8 1x40"}, 300, True),
        Case("stays quiet", "it failed on Monday, and was stopped on Friday: LedgerQueryDown fires",
             {ACTIVE: "1x8 0x40", EXPECTED: "1x48", FAILED: "0x48"}, 300, False),
        Case("stays quiet", "it failed once, and then processed all available rows",
             {ACTIVE: "1x8 0x2 1x10 0x40", EXPECTED: "1x20 stale", FAILED: "0x8 1x60"}, 700, False),
        Case("resolves", "it runs again",
             {ACTIVE: "1x8 0x12 1x40", EXPECTED: "1x61", FAILED: "0x8 1x60"}, 600, False),
        Case("series vanishes", "the driver is gone",
             {ACTIVE: "1x8 0x8 stale", EXPECTED: "1x16 stale", FAILED: "0x8 1x8 stale"}, 600, False),
        Case("query restarts", "it failed and came back at once",
             {ACTIVE: "1x8 0x1 1x39", EXPECTED: "1x48", FAILED: "0x8 1x40"}, 180, False),
    ),
)  # fmt: skip
