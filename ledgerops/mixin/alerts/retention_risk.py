"""The alert of the rule retention-risk: unread rows will soon be deleted."""

from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import ACTIVE, BY, LAG, TRIGGER, of_ending, worst
from ledgerops.mixin.site import Site

BATCH = "ledgerops_last_batch_duration_seconds"
HEADROOM = "ledgerops_query_retention_headroom_seconds"
WINDOW_SECONDS = 300.0
# seconds of headroom lost each second, as in the rule: less is the to and fro of batches
MIN_SHRINK_RATE = 0.05


def _expression(site: Site) -> str:
    headroom = site.series(HEADROOM)
    # only where it shrinks: a topic that keeps its rows for less is no risk
    shrinks = f"deriv({headroom}[{site.window(WINDOW_SECONDS)}]) < -{MIN_SHRINK_RATE:g}"
    # between two batches it shrinks by a second a second: unread rows must be older than that; one that processes what
    # there is, and ends, has no interval to wait for
    batch = worst(site, BATCH)
    usual = f"{batch} + ({site.series(TRIGGER)} or 0 * {batch})"
    late = f"and on (job, app, query) {worst(site, LAG)} > 2 * ({usual})"
    return f"min {BY} ({headroom} and {shrinks}) < {site.retention_seconds:g} {late}"


ALERT = Alert(
    name="LedgerRetentionRisk", severity="critical", expression=_expression, hold=60.0,
    summary="Rows will be deleted before a query has read them.",
    description=(
        "At the current rate, in {{ $value | humanizeDuration }} the topic will delete rows that {{ $labels.query }} "
        "has not read."
    ),
    names_cause=True, rule="retention-risk", page="ledgerops-query",
    cases=(
        Case("fires", "half an hour left and shrinking",
             {HEADROOM: "2400-10x80", LAG: "9x80", BATCH: "2x80", ACTIVE: "1x80"}, 600, True),
        Case("fires", "of a query that reads all there is, and ends",
             {HEADROOM: "2400-10x80", LAG: "9x80", BATCH: "2x80", ACTIVE: "1x80", of_ending(): "1x80"}, 600, True),
        Case("stays quiet", "such a query reads faster than rows get old",
             {HEADROOM: "1200+5x80", LAG: "9x80", BATCH: "2x80", ACTIVE: "1x80", of_ending(): "1x80"}, 600, False),
        Case("stays quiet", "a topic of an hour, read every ten minutes",
             {HEADROOM: "3600-15x39 3600-15x39", LAG: "0+15x39 0+15x39", BATCH: "20x80", ACTIVE: "1x80",
              "ledgerops_trigger_interval_seconds": "600x80"}, 570, False),
        Case("stays quiet", "half an hour, and growing", {HEADROOM: "1200+5x80"}, 600, False),
        Case("stays quiet", "a topic that keeps its rows for half an hour", {HEADROOM: "1790 1795x80"}, 600, False),
        Case("stays quiet", "everything is read", {HEADROOM: "2400-10x20 stale _x40"}, 600, False),
        Case("resolves", "retention was raised", {HEADROOM: "2400-10x40 90000x80"}, 1500, False),
        Case("series vanishes", "it ended", {HEADROOM: "2400-10x20 stale"}, 900, False),
        Case("query restarts", "catching up", {HEADROOM: "2400x8 2400+40x60"}, 600, False),
    ),
)  # fmt: skip
