"""The alert of the rule query-stuck: a query lives and says nothing for far longer than it ever needs."""

from ledgerops.diagnosis.facts.hang import MIN_STUCK_SECONDS
from ledgerops.mixin.alerts.model import Alert, Case, of
from ledgerops.mixin.alerts.promql import ACTIVE, SEEN, SILENCE, TRIGGER, ends, of_ending, of_rule, worst
from ledgerops.mixin.site import Site

HANGS, MOVES = (f'ledgerops_finding{{rule="query-stuck", severity="{each}"}}' for each in ("critical", "warning"))
BATCH, INTERVAL = "ledgerops_last_batch_duration_seconds", "ledgerops_trigger_interval_seconds"

# taken as the duration of a first batch that is not over, which reads what has waited: such a query counts as stuck
# after a quarter of an hour, if the diagnosis does not say so before
FIRST_BATCH_SECONDS = 280.0
ENDING_SECONDS = 3600.0  # of a query that processes what there is, and ends: one batch may have all of it
# allowed on top of three triggers and three batches: a start of Spark, a rebalance, a long garbage collection
SPARE_SECONDS = 60.0


def spare_seconds(site: Site) -> float:
    """Allowed on top of three triggers and three batches. What Spark and the diagnosis need is not scaled: a page must
    not come before its cause."""
    return max(SPARE_SECONDS * site.time_scale, MIN_STUCK_SECONDS)


def _expression(site: Site) -> str:
    quiet = site.series(SILENCE)
    # a query without a batch yet may take minutes for it: it has all of the past to read
    first = f"0 * {quiet} + {FIRST_BATCH_SECONDS:g}"
    batch = f"({worst(site, BATCH)} or {first})"
    # a batch whose tasks end is a warning of the diagnosis, however long it takes; one that hangs it may know earlier
    known, moves = (
        of_rule(site, "ledgerops_finding", "query-stuck", f'severity="{severity}"')
        for severity in ("critical", "warning")
    )
    long = f"{quiet} > {spare_seconds(site):g} + 3 * ({batch} + {site.series(TRIGGER)})"
    return (
        f"({long} unless on (job, app, query) {moves}) "
        f"or ({quiet} > {ENDING_SECONDS:g} and on (job, app, query) {ends(site)}) "
        f"or ({quiet} and on (job, app, query) {known})"
    )


ALERT = Alert(
    name="LedgerQueryStuck", severity="critical", expression=_expression, hold=30.0,
    summary="A query is running but reports no progress.",
    description="{{ $labels.query }} has reported nothing for {{ $value | humanizeDuration }}, far longer than its "
    "trigger interval and its batches explain.",
    names_cause=True, rule="query-stuck",
    inhibits=("LedgerFallingBehind", "LedgerTriggerOverrun", "LedgerFreshnessTicket"),
    cases=(
        Case("fires", "last seen at 60 s, and never since",
             {SEEN: "0+15x4 60x60", BATCH: "2x60", INTERVAL: "5x60", ACTIVE: "1x60"}, 300, True),
        Case("stays quiet", "batches of a minute under a trigger of a minute",
             {SEEN: "0x8 120x8 240x8 360x8", BATCH: "60x40", INTERVAL: "60x40", ACTIVE: "1x40"}, 470, False),
        Case("stays quiet", "a first batch of fourteen minutes", {SEEN: "0x60", ACTIVE: "1x60"}, 840, False),
        Case("fires", "a first batch of sixteen minutes", {SEEN: "0x80", ACTIVE: "1x80"}, 990, True),
        Case("fires", "one of two minutes, which hangs as the diagnosis knows",
             {SEEN: "0x60", ACTIVE: "1x60", HANGS: "_x4 1x60"}, 120, True),
        Case("stays quiet", "a long batch whose tasks end",
             {SEEN: "0+15x4 60x60", BATCH: "2x60", INTERVAL: "5x60", ACTIVE: "1x60", MOVES: "_x8 1x60"}, 600, False),
        Case("stays quiet", "a batch of twenty minutes that reads all there is, and ends",
             {SEEN: "0x100", ACTIVE: "1x100", of_ending(): "1x100"}, 1200, False),
        Case("fires", "such a batch of more than an hour",
             {SEEN: "0x300", ACTIVE: "1x300", of_ending(): "1x300"}, 3900, True),
        Case("stays quiet", "continuous mode, of which Spark tells nothing",
             {SEEN: "0x300", ACTIVE: "1x300", of_ending("continuous 1s"): "1x300"}, 3900, False),
        Case("stays quiet", "it ended on one driver and runs on another",
             {of(SEEN, instance="old"): "0x80", of(ACTIVE, instance="old"): "1x4 0x76", SEEN: "0+15x80", BATCH: "2x80",
              ACTIVE: "1x80"}, 900, False),
        Case("resolves", "it speaks again",
             {SEEN: "0+15x4 60x20 375+15x40", BATCH: "2x70", INTERVAL: "5x70", ACTIVE: "1x70"}, 600, False),
        Case("series vanishes", "the query ended: others speak",
             {SEEN: "0+15x4 60x4 stale", ACTIVE: "1x8 0x60"}, 600, False),
        Case("query restarts", "a start that takes half a minute",
             {SEEN: "0+15x8 120x3 180+15x20", BATCH: "2x40", INTERVAL: "5x40", ACTIVE: "1x8 0x3 1x30"}, 240, False),
    ),
)  # fmt: skip
