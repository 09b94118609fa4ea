"""The alert of the rule rows-dropped: a query drops rows because they are late."""

from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import BY, born_or_increased
from ledgerops.mixin.site import Site

MIN_ROWS = 10  # fewer in ten minutes are stragglers that every source has
# of the rows read: how much an hourly report may lack is for its owner to say, but 1 in 1,000 is a lot
MIN_SHARE = 0.001
WINDOW_SECONDS = 600.0
# how far before the window the first count of a series is looked for: scrapes may have failed just then
LOOK_BACK_SECONDS = 3600.0
YOUNG_SECONDS = WINDOW_SECONDS + LOOK_BACK_SECONDS
DROPPED = 'ledgerops_rows_dropped_by_watermark_total{operator="o"}'
READ = 'ledgerops_input_rows_total{source="s"}'
STARTED = "ledgerops_query_start_timestamp_seconds"


def _expression(site: Site) -> str:
    dropped, read = (_counted(site, name) for name in ("rows_dropped_by_watermark_total", "input_rows_total"))
    return f"{dropped} > {MIN_SHARE:g} * {read} > {MIN_ROWS}"  # a comparison keeps its left side


def _counted(site: Site, name: str) -> str:
    """What a counter of each query counted in the window: of a series that is younger all, with what its first batch
    had, by which it is born."""
    series, window = site.series(f"ledgerops_{name}"), site.window(WINDOW_SECONDS)
    counted = born_or_increased(series, site.series(STARTED), window, site.window(LOOK_BACK_SECONDS), YOUNG_SECONDS)
    return f"sum {BY} {counted}"


ALERT = Alert(
    name="LedgerRowsDropped", severity="warning", expression=_expression, hold=60.0,
    summary="A query is dropping late rows.",
    description=(
        '{{ $labels.query }} dropped {{ $value | printf "%.0f" }} late rows within ten minutes, more than one in a '
        "thousand."
    ),
    names_cause=True, rule="rows-dropped",
    cases=(
        Case("fires", "one row in twenty", {DROPPED: "0+50x60", READ: "0+1000x60"}, 600, True),
        Case("stays quiet", "one row in ten thousand", {DROPPED: "0+1x60", READ: "0+10000x60"}, 600, False),
        Case("stays quiet", "three rows in all", {DROPPED: "0x10 3x50", READ: "0+10x60"}, 600, False),
        Case("fires", "the first batch of a driver dropped them",
             {DROPPED: "_x10 5000x60", READ: "_x10 90000x60", STARTED: "_x10 140x60"}, 400, True),
        Case("stays quiet", "nothing was scraped for more than an hour, and the rows are old",
             {DROPPED: "5000x40 _x310 5000x40", READ: "90000x40 _x310 90000x40", STARTED: "0x400"}, 5400, False),
        Case("stays quiet", "nothing was scraped for six minutes ten minutes ago, and the rows are old",
             {DROPPED: "5000x40 _x24 5000x80", READ: "4000000x40 _x24 4000000x80"}, 1605, False),
        Case("resolves", "none for an hour", {DROPPED: "0+50x40 2000x240", READ: "0+1000x280"}, 4000, False),
        Case("series vanishes", "the query ended", {DROPPED: "0+50x40 stale", READ: "0+1000x40 stale"}, 2400, False),
        Case("query restarts", "counters begin anew", {DROPPED: "0x60", READ: "0+1000x20 0+1000x40"}, 600, False),
    ),
)  # fmt: skip
