"""The alert of the rule query-failed: a run ended with an exception, and none is on."""

from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import alive, worst
from ledgerops.mixin.site import Site


def _expression(site: Site) -> str:
    failures = site.series("ledgerops_query_failures_total")
    # a query that processed all there was, and failed once before that, is expected no more
    expected = f"{worst(site, 'ledgerops_query_expected')} == 1"
    return (
        f"sum by (job, app, query, error_class) ({failures}) > 0 and on (job, app, query) {expected} "
        f"unless on (job, app, query) {alive(site)}"
    )


ALERT = Alert(
    name="LedgerQueryFailed", severity="critical", expression=_expression, hold=30.0,
    summary="A query failed and is not running.",
    description="{{ $labels.query }} failed with {{ $labels.error_class }} and has no active run.", rule="query-failed",
    inhibits=("LedgerQueryDown", "LedgerQueryStuck", "LedgerFallingBehind", "LedgerFreshnessTicket"),
    cases=(
        Case(
            "fires", "it failed in one application while its namesake in another runs",
            {
                'ledgerops_query_failures_total{app="b", instance="b:1", error_class="X"}': "_x8 1x40",
                'ledgerops_query_active{app="b", instance="b:1"}': "1x8 0x40",
                'ledgerops_query_expected{app="b", instance="b:1"}': "1x48",
                'ledgerops_query_active{app="a", instance="a:1"}': "1x48",
                'ledgerops_query_expected{app="a", instance="a:1"}': "1x48",
            }, 300, True,
        ),
        Case(
            "fires", "it failed and stays down",
            {
                'ledgerops_query_failures_total{error_class="X"}': "_x8 1x40",
                "ledgerops_query_active": "1x8 0x40", "ledgerops_query_expected": "1x48",
            }, 300, True,
        ),
        Case(
            "stays quiet", "it failed once, and then processed all available rows",
            {
                'ledgerops_query_failures_total{error_class="X"}': "_x8 1x60",
                "ledgerops_query_active": "1x8 0x2 1x10 0x40", "ledgerops_query_expected": "1x20 stale",
            }, 700, False,
        ),
        Case(
            "stays quiet", "it was stopped without an error",
            {"ledgerops_query_active": "1x8 0x40"}, 300, False,
        ),
        Case(
            "resolves", "it runs again",
            {
                'ledgerops_query_failures_total{error_class="X"}': "_x8 1x60",
                "ledgerops_query_active": "1x8 0x12 1x40",
            }, 600, False,
        ),
        Case(
            "series vanishes", "the driver is gone",
            {
                'ledgerops_query_failures_total{error_class="X"}': "_x8 1x8 stale",
                "ledgerops_query_active": "1x8 0x8 stale",
            }, 600, False,
        ),
        Case(
            "query restarts", "it failed and came back at once",
            {
                'ledgerops_query_failures_total{error_class="X"}': "_x8 1x40",
                "ledgerops_query_active": "1x8 0x1 1x39",
            }, 180, False,
        ),
    ),
)  # fmt: skip
