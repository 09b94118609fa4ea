"""The alert of the rule crash-loop: a query fails, is restarted, and fails again."""

from ledgerops.mixin.alerts.model import Alert, Case, of
from ledgerops.mixin.alerts.promql import BY, of_ending, unless_ends, worst
from ledgerops.mixin.site import Site

MIN_FAILURES = 3  # one crash is LedgerQueryDown's; three in a quarter of an hour are a loop
MIN_RESTARTS = MIN_FAILURES - 1  # nothing need come after the last failure
WINDOW_SECONDS = 900.0
# how far before the window its first count is looked for: a scrape may have failed just then
LOOK_BACK_SECONDS = 3600.0
FAILED, RESTARTED = "ledgerops_query_failures_total", "ledgerops_query_restarts_total"
START, STARTED = "query:start:seconds", "ledgerops_query_start_timestamp_seconds"
X, Y, Z = (of(FAILED, error_class=error) for error in "XYZ")
A, B, C, D = (of(STARTED, instance=driver) for driver in "abcd")
KILLED = {A: "100x8 stale", B: "_x12 280x8 stale", C: "_x24 460x8 stale"}  # three, each in its first batch


def _expression(site: Site) -> str:
    failures, window = site.series(FAILED), site.window(WINDOW_SECONDS)
    before = f"last_over_time({failures}[{site.window(LOOK_BACK_SECONDS)}] offset {window})"
    # a new driver counts from the beginning: a drop within the window, or since the last count before it
    anew = f"(resets({failures}[{window}]) > 0 or min_over_time({failures}[{window}]) < {before})"
    # then all count, and so they do of a series that begins within the window, as it does with its first failure
    failed = f"sum {BY} (({failures} - {before} unless {anew}) or {failures}) >= {MIN_FAILURES}"
    restarts = site.series(RESTARTED)
    # and it must go on: where nothing was scraped for hours, failures of long ago look new
    again = f"sum {BY} ({restarts} - min_over_time({restarts}[{window}])) >= {MIN_RESTARTS}"
    # a driver that ends with its query, or is killed, begins to count anew each time. One that has processed nothing
    # since it was started last was not started on purpose so often, unless it is started to process what there is
    start = site.series(START)
    begun = f"changes({start}[{window}]) >= {MIN_FAILURES} and on (job, app, query) {start}"
    idle = f"unless on (job, app, query) {site.series('ledgerops_last_batch_duration_seconds')} {unless_ends(site)}"
    return f"({failed} and on (job, app, query) {again}) or ({begun} {idle})"


def records(site: Site) -> list[tuple[str, str]]:
    """The recording rule (name, expression) of when each query was started, on whichever driver."""
    return [(START, worst(site, STARTED))]


ALERT = Alert(
    name="LedgerCrashLoop", severity="critical", expression=_expression, hold=30.0,
    summary="A query keeps failing and restarting.",
    description=(
        '{{ $labels.query }} failed or was started again {{ $value | printf "%.0f" }} times within a quarter of an '
        "hour."
    ),
    names_cause=True, rule="crash-loop", inhibits=("LedgerQueryDown", "LedgerFreshnessTicket"),
    cases=(
        Case("fires", "four failures in five minutes, the first that there are",
             {RESTARTED: "0x4 1x4 2x4 3x4 4x30", X: "_x4 1x4 2x4 3x4 4x30"}, 360, True),
        Case("fires", "three more than the ten of last week",
             {RESTARTED: "10x100 11x4 12x4 13x30", X: "10x100 11x4 12x4 13x30"}, 1700, True),
        Case("fires", "each time with another error",
             {RESTARTED: "0x4 1x4 2x4 3x30", X: "_x4 1x40", Y: "_x8 1x40", Z: "_x12 1x40"}, 300, True),
        Case("fires", "a new driver fails as the old one did",
             {RESTARTED: "8x70 0x4 1x4 2x4 3x30", X: "8x70 _x4 1x4 2x4 3x30"}, 1400, True),
        Case("fires", "a new driver fails more often than the old one did, within the window",
             {RESTARTED: "2x100 0x8 1x4 2x4 3x4", X: "2x100 _x4 1x4 2x4 3x4 3x4"}, 1785, True),
        Case("fires", "it first failed when the old one was away for long",
             {RESTARTED: "2x100 0x60 1x4 2x30", X: "2x100 _x55 1x4 2x4 3x30"}, 2595, True),
        Case("fires", "the old one had failed once before the window, and again within it",
             {RESTARTED: "1x60 2x40 0x4 1x4 2x4 2x30", X: "1x60 2x40 1x4 2x4 3x30"}, 1725, True),
        Case("fires", "each new driver is killed in its first batch", {**KILLED, D: "_x36 640x20"}, 650, True),
        Case("series vanishes", "each new driver was killed, and no other came",
             {**KILLED, D: "_x36 640x8 stale"}, 900, False),
        Case("stays quiet", "three new drivers, the last of which works",
             {**KILLED, D: "_x36 640x20", of("ledgerops_last_batch_duration_seconds", instance="d"): "_x38 2x20"},
             650, False),
        Case("stays quiet", "a new driver every three minutes for a query that ends by itself",
             {**KILLED, D: "_x36 640x20", of_ending(): "1x80"}, 650, False),
        Case("stays quiet", "restarts without a failure: deployments", {RESTARTED: "0x4 1x4 2x4 3x4 4x30"}, 360, False),
        Case("stays quiet", "three deployments, and three failures last week",
             {RESTARTED: "3x100 4x4 5x4 6x30", X: "3x140"}, 1700, False),
        Case("stays quiet", "two failures after ten of last week",
             {RESTARTED: "10x100 11x4 12x30", X: "10x100 11x4 12x30"}, 1700, False),
        Case("stays quiet", "two deployments, and a scrape that failed a quarter of an hour ago",
             {RESTARTED: "3x20 _x4 3x50 4x4 5x4", X: "3x20 _x4 3x60"}, 1230, False),
        Case("stays quiet", "nothing was scraped for hours, and the failures are old",
             {RESTARTED: "5x20 _x310 5x40", X: "5x20 _x310 5x40"}, 5250, False),
        Case("stays quiet", "a new driver fails twice, as the old one did",
             {RESTARTED: "2x100 0x8 1x4 2x40", X: "2x100 _x8 1x4 2x40"}, 1800, False),
        Case("stays quiet", "two failures, long after those of a new driver",
             {RESTARTED: "9x20 0x4 1x4 2x100 3x4 4x40", X: "9x20 1x4 2x100 3x4 4x40"}, 2130, False),
        Case("resolves", "the loop ended long ago",
             {RESTARTED: "0x4 1x4 2x4 3x4 4x200", X: "_x4 1x4 2x4 3x4 4x200"}, 1800, False),
        Case("series vanishes", "the driver is gone",
             {RESTARTED: "0x4 1x4 2x4 3x4 4x4 stale", X: "_x4 1x4 2x4 3x4 4x4 stale"}, 1800, False),
        Case("query restarts", "one failure, one restart", {RESTARTED: "0x8 1x40", X: "_x8 1x40"}, 360, False),
    ),
)  # fmt: skip
