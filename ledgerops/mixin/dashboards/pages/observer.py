"""The row of the Resources page about ledgerops itself."""

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import EACH_DRIVER, Column, Label, Panel, Row, by, counted, d, over, rate

CALLBACK = over(
    by("sum", EACH_DRIVER, rate(d("ledgerops_callback_seconds_total"))),
    by("sum", EACH_DRIVER, rate(d("ledgerops_callbacks_total"))),
)
WORKER = by("sum", EACH_DRIVER, rate(d("ledgerops_worker_seconds_total")))
SCRAPE = by("max", EACH_DRIVER, d("ledgerops_scrape_seconds"))
DROPPED = counted(d("ledgerops_listener_dropped_total"), EACH_DRIVER)
ERRORS = counted(d("ledgerops_collector_errors_total"), EACH_DRIVER)

ROW = Row(
    "Does ledgerops itself keep up, and what did it miss?",
    (
        Panel(
            "What ledgerops missed in the last hour, and what it costs",
            (
                Column(DROPPED, "events dropped", bad=1.0, pixels=150),
                Column(ERRORS, "errors", warn=1.0, pixels=100),
                Column(
                    by("max", EACH_DRIVER, d("ledgerops_series_dropped_total")), "series left out", warn=1.0,
                    pixels=130,
                ),
                Column(
                    by("max", EACH_DRIVER, d("ledgerops_listener_queue_size")), "events waiting",
                    warn=thresholds.WAITING_EVENTS, pixels=130,
                ),
                Column(CALLBACK, "listener callback", unit="s", warn=thresholds.CALLBACK_SECONDS, pixels=150),
                Column(
                    WORKER, "worker load", unit="percentunit", warn=thresholds.WORKER_SHARE, cell="gauge", pixels=160,
                ),
                Column(SCRAPE, "scrape", unit="s", warn=thresholds.SCRAPE_SECONDS, pixels=100),
            ),
            "short",
            "Events that were dropped because the queue was full, failures of collectors or rules, and series beyond a query's budget (setting series_per_query). The job itself is not affected. Then what observation costs: the mean time of a callback in Spark's listener thread, the share of one core that the worker thread uses, and the time of a scrape. Good: nothing missed, and no colour.",
            kind="table", labels=(Label("instance", "driver", None),), order=("events dropped", "errors"), width=24,
            height=8, empty="no driver answers",
        ),
    ),
)  # fmt: skip
