"""The alert of the rule trigger-overrun: batches take longer than their trigger interval."""

from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import BY, TRIGGER, of_ending
from ledgerops.mixin.site import Site

WINDOW_SECONDS = 300.0
NOW_SECONDS = 60.0  # a query whose batches of the last minute were quick is not late any more, whatever the mean says
DURATION, INTERVAL = "ledgerops_last_batch_duration_seconds", "ledgerops_trigger_interval_seconds"
BUSY = "ledgerops_busy_ratio"  # 0 from when Spark reports that there is nothing to read until the next batch ends


def _expression(site: Site) -> str:
    mean = f"max {BY} (avg_over_time({site.series(DURATION)}[{site.window(WINDOW_SECONDS)}]))"
    # the duration of the newest batch stays as it is for as long as none comes after it
    idle = f"unless on (job, app, instance, query) {site.series(BUSY)} == 0"
    newest = f"max {BY} (max_over_time({site.series(DURATION)}[{site.window(NOW_SECONDS)}]) {idle})"
    # a query that runs back to back has an interval of 0 and nothing to overrun
    interval = f"on (job, app, query) ({site.series(TRIGGER)} > 0)"
    # a batch in real-time mode lasts for its interval and what it takes to plan and commit it
    real_time = site.series("ledgerops_query_info", 'trigger=~"real_time( .+)?"')  # the label has the interval
    return f"{mean} > {interval} and {newest} > {interval} unless on (job, app, query) {real_time}"


ALERT = Alert(
    name="LedgerTriggerOverrun", severity="warning", expression=_expression, hold=120.0,
    summary="Batches take longer than their trigger interval.",
    description=(
        "A batch of {{ $labels.query }} takes {{ $value | humanizeDuration }} on average (last five minutes), longer "
        "than the trigger interval."
    ),
    names_cause=True, rule="trigger-overrun",
    cases=(
        Case("fires", "8 s of 5 s", {DURATION: "8x60", INTERVAL: "5x60", BUSY: "1x60"}, 600, True),
        Case("fires", "its busy ratio is not known", {DURATION: "8x60", INTERVAL: "5x60"}, 600, True),
        Case("stays quiet", "nothing to read after a last batch that took longer",
             {DURATION: "4x20 12x80", INTERVAL: "10x100", BUSY: "0.5x21 0x79"}, 900, False),
        Case("resolves", "nothing to read any more",
             {DURATION: "8x100", INTERVAL: "5x100", BUSY: "1x40 0x60"}, 900, False),
        Case("stays quiet", "4 s of 5 s, one slow batch", {DURATION: "4x10 15x1 4x60", INTERVAL: "5x60"}, 600, False),
        Case("stays quiet", "quick again before it waited for two minutes",
             {DURATION: "2x20 60x3 2x60", INTERVAL: "5x90"}, 480, False),
        Case("stays quiet", "back to back", {DURATION: "8x60", INTERVAL: "0x60"}, 600, False),
        Case("stays quiet", "real-time mode", {DURATION: "8x60", INTERVAL: "5x60", of_ending("real_time 5s"): "1x60"},
             600, False),
        Case("resolves", "quick again", {DURATION: "8x30 2x60", INTERVAL: "5x90"}, 1200, False),
        Case("series vanishes", "the query ended", {DURATION: "8x30 stale", INTERVAL: "5x30 stale"}, 1200, False),
        Case("query restarts", "a slow first batch", {DURATION: "2x20 12x3 2x40", INTERVAL: "5x60"}, 500, False),
    ),
)  # fmt: skip
