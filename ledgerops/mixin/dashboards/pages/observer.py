"""Observer: what ledgerops itself costs and misses."""

from __future__ import annotations

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import Column, Page, Panel, Row, Target, by, d, over, pace, rate

PAGE = Page(
    uid="ledgerops-observer",
    title="ledgerops / Observer",
    help="What observation costs the driver, and what it missed.",
    rows=(
        Row(
            "Cost",
            (
                Panel(
                    "Time in Spark's listener thread",
                    (
                        Target(
                            over(
                                by("sum", "instance", rate(d("ledgerops_callback_seconds_total"))),
                                by("sum", "instance", rate(d("ledgerops_callbacks_total"))),
                            ),
                            "{{instance}}",
                        ),
                    ),
                    "s",
                    f"Mean time of a callback; nearly all of it fetches the event's JSON. Good: below {thresholds.millis(thresholds.CALLBACK)}.",
                    warn=thresholds.CALLBACK,
                    width=6,
                ),
                Panel(
                    "Worker by step",
                    (pace(d("ledgerops_worker_seconds_total"), "{{instance}} {{step}}", "instance, step"),),
                    "s",
                    f"Seconds of the worker thread in each second. Good: below {thresholds.WORKER:g} in sum.",
                    warn=thresholds.WORKER,
                    stacked=True,
                    width=6,
                ),
                Panel(
                    "Scrape",
                    (Target(by("max", "instance", d("ledgerops_scrape_seconds")), "{{instance}}"),),
                    "s",
                    f"How long the previous scrape took. Good: below {thresholds.millis(thresholds.SCRAPE)}.",
                    warn=thresholds.SCRAPE,
                    width=6,
                ),
                Panel(
                    "Recording",
                    (pace(d("ledgerops_recording_bytes_total"), "{{instance}}", "instance"),),
                    "Bps",
                    "Bytes written to the recording, 0 without one. Good: some kB a batch.",
                    width=6,
                ),
            ),
        ),
        Row(
            "Missed",
            (
                Panel(
                    "Events dropped",
                    (pace(d("ledgerops_listener_dropped_total"), "{{instance}}", "instance"),),
                    "ops",
                    "Events thrown away because the queue was full. Good: 0.",
                    bad=thresholds.ANY,
                ),
                Panel(
                    "Queue",
                    (Target(by("max", "instance", d("ledgerops_listener_queue_size")), "{{instance}}"),),
                    "short",
                    "Events that wait for the worker. Good: near 0.",
                    warn=thresholds.WAITING,
                ),
                Panel(
                    "Errors",
                    (pace(d("ledgerops_collector_errors_total"), "{{instance}} {{collector}}", "instance, collector"),),
                    "ops",
                    "Failures of collectors, rules or the recording; the job is not touched. Good: 0.",
                    warn=thresholds.ANY,
                ),
                Panel(
                    "Series left out",
                    (Column(by("max", "instance", d("ledgerops_series_dropped_total")), "series", warn=1.0),),
                    "short",
                    "Series beyond a query's budget, at most at one time. Good: 0; raise series_per_query if they are missed.",
                    kind="table",
                    width=12,
                ),
                Panel(
                    "Events",
                    (pace(d("ledgerops_listener_events_total"), "{{event}}", "event"),),
                    "ops",
                    "Events that Spark's listener bus delivered. Good: one for each batch of each query.",
                    width=12,
                ),
            ),
        ),
    ),
)
