"""The rows of the Query page with the numbers of every query: throughput, batch time, backlog, event time, state, skew."""

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import Panel, Row, Target, by, per_second, q, worst
from ledgerops.mixin.dashboards.status import never_empty

ONE_QUERY = "app, query"
PARTITION = "app, query, topic, partition"
BATCHES = f"increase({q('ledgerops_batch_duration_seconds_bucket')}[$__rate_interval])"
LAST_BATCH = q("ledgerops_last_batch_duration_seconds")
BACKLOG = q("ledgerops_source_backlog_offsets")
UNREAD = never_empty(by("sum", PARTITION, BACKLOG), BACKLOG, "topic", "no offsets")
LAG = by("max", PARTITION, q("ledgerops_source_lag_seconds"))
SEEN = by("max", ONE_QUERY, q("ledgerops_last_seen_timestamp_seconds"))
NEWEST_EVENT = by("max", ONE_QUERY, q("ledgerops_event_time_max_timestamp_seconds"))

KEEPING_UP = Row(
    "Is it keeping up?",
    (
        Panel(
            "Arrival, input and sustainable rate",
            (
                Target(by("sum", ONE_QUERY, q("ledgerops_arrival_rows_per_second")), "arrival"),
                per_second(q("ledgerops_input_rows_total"), "read", ONE_QUERY),
                Target(by("max", ONE_QUERY, q("ledgerops_capacity_rows_per_second")), "sustainable rate"),
            ),
            "rowsps",
            "Rows per second that arrive (growth of the source's head offsets), that are read, and that the query can sustain. Good: arrival well below the sustainable rate, read equal to arrival.",
        ),
        Panel(
            "Pressure and busy",
            (
                Target(by("max", ONE_QUERY, q("ledgerops_pressure_ratio")), "pressure"),
                Target(by("max", ONE_QUERY, q("ledgerops_busy_ratio")), "busy"),
            ),
            "percentunit",
            f"Pressure is arrival over the sustainable rate; busy is the share of the time that batches take. Good: pressure below {thresholds.percent(thresholds.PRESSED)}, the lower line, and busy below {thresholds.percent(thresholds.BUSY)}.",
            warn=thresholds.PRESSED, bad=thresholds.OVERLOADED,
        ),
    ),
)  # fmt: skip
BATCH_TIME = Row(
    "Where does the batch time go?",
    (
        Panel(
            "Batch duration",
            (Target(never_empty(by("sum", "le", BATCHES), LAST_BATCH, "le", "+Inf"), "{{le}}"),), "s",
            "How many batches took how long; the stronger the colour, the more. Good: a narrow band below the trigger interval.",
            kind="heatmap", height=10, empty="no batch has finished",
        ),
        Panel(
            "Current batch against the trigger interval",
            (
                Target(by("max", ONE_QUERY, q("ledgerops_batch_running_seconds")), "current batch"),
                Target(by("max", ONE_QUERY, LAST_BATCH), "last batch"),
                Target(by("max", ONE_QUERY, q("ledgerops_trigger_interval_seconds")), "trigger interval"),
                Target(f"time() - {SEEN}", "since last heard of"),
            ),
            "s",
            "How long the current batch has been running, how long the last one took, and how long ago the query last reported. Good: all near the trigger interval.",
            height=10, empty="no batch has finished",
        ),
        Panel(
            "Typical batch by part",
            (Target(by("max", f"{ONE_QUERY}, part", q("ledgerops_batch_part_seconds")), "{{part}}"),), "s",
            "A typical recent batch, in parts that add up to its duration. Good: cpu and python dominate; the driver and waiting stay thin.",
            stacked=True, width=24, empty="no batch has finished",
        ),
    ),
)  # fmt: skip
BEHIND = Row(
    "What is behind?",
    (
        Panel(
            "Backlog by partition",
            (Target(UNREAD, "{{topic}} {{partition}}"),), "short",
            "Offsets not read yet; the stronger the colour, the more. Good: empty, or alike in all partitions.",
            kind="heatmap", empty="the source reports no offsets",
        ),
        Panel(
            "Lag, five largest partitions", (Target(worst(LAG, PARTITION), "{{topic}} {{partition}}"),), "s",
            "Age of the oldest unread row of a partition; it cannot be finer than the trigger interval. Good: below a few trigger intervals.",
            warn=thresholds.ageing_seconds, bad=thresholds.stale_seconds, empty="lag cannot be measured",
        ),
    ),
)  # fmt: skip
EVENT_TIME = Row(
    "Is event time healthy?",
    (
        Panel(
            "Watermark lag",
            (
                Target(by("max", ONE_QUERY, q("ledgerops_watermark_lag_seconds")), "watermark"),
                Target(f"time() - {NEWEST_EVENT}", "newest event"),
            ),
            "s",
            "Now minus the watermark, and minus the newest event time: both grow while the query is stuck, idle or reads old data. Good: the lateness plus a trigger interval; a negative value for the newest event means that a row is dated in the future.",
            least=None, waits="a query with a watermark", drill="late-flood",
        ),
        Panel(
            "Rows dropped as late",
            (per_second(q("ledgerops_rows_dropped_by_watermark_total"), "{{operator}}", f"{ONE_QUERY}, operator"),),
            "rowsps", "Rows behind the watermark that an operator dropped; for aggregations a lower bound. Good: 0.",
            warn=thresholds.ANY, empty="the query has no state, so no row is dropped as late",
        ),
    ),
)  # fmt: skip
STATE = Row(
    "What holds state, and is the work even?",
    (
        Panel(
            "State memory by operator",
            (Target(by("sum", f"{ONE_QUERY}, operator", q("ledgerops_state_memory_bytes")), "{{operator}}"),), "bytes",
            "Memory of the state stores, as reported by Spark; the State page has the details. Good: a plateau.",
            link="ledgerops-state", empty="the query has no state",
        ),
        Panel(
            "Largest over median", (Target(by("max", f"{ONE_QUERY}, kind", q("ledgerops_skew_ratio")), "{{kind}}"),),
            "short",
            f"The largest over the median, by kind, in the newest batch: rows of source partitions, records and time of tasks, time of executors. Good: below {thresholds.SKEWED:g}; of two tasks it cannot exceed 2.",
            warn=thresholds.SKEWED, bad=thresholds.VERY_SKEWED, empty="too few partitions or tasks to compare",
        ),
    ),
)  # fmt: skip
ROWS = (KEEPING_UP, BATCH_TIME, BEHIND, EVENT_TIME, STATE)
