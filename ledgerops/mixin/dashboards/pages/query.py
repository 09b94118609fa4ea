"""Query: one query from its input to its output, and what the diagnosis says of it."""

from __future__ import annotations

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import Page, Panel, Row, Target, by, pace, q, quantile
from ledgerops.mixin.dashboards.pages import query_data
from ledgerops.mixin.dashboards.status import FOUND, NAMES, found, present, status

BATCHES = q("ledgerops_batch_duration_seconds_bucket")

PAGE = Page(
    uid="ledgerops-query",
    title="ledgerops / Query",
    help="One query: throughput, batch time by phase, event time, backlog and lag by partition, pressure, and the verdict.",
    single=True,
    rows=(
        Row(
            "Verdict",
            (
                Panel(
                    "Status",
                    (Target(by("max", "query", status()), "{{query}}"),),
                    "short",
                    "The status over time. Good: healthy or idle.",
                    kind="state-timeline",
                    names=NAMES,
                    width=12,
                    height=5,
                ),
                Panel(
                    "Health",
                    (Target(by("min", "query", present(q("ledgerops_health_score")))),),
                    "short",
                    "100 with nothing found. Good: 100.",
                    kind="stat",
                    warn=thresholds.HEALTHY,
                    bad=thresholds.POOR,
                    low=True,
                    most=100,
                    width=4,
                    height=5,
                ),
                Panel(
                    "Up for",
                    (Target("time() - " + by("max", "query", q("ledgerops_query_start_timestamp_seconds"))),),
                    "s",
                    "Since the present run began; no number while none is on. Good: since the newest deployment.",
                    kind="stat",
                    width=4,
                    height=5,
                ),
                Panel(
                    "Restarts in the last hour",
                    (Target(by("sum", "query", "increase(" + q("ledgerops_query_restarts_total") + "[1h])")),),
                    "short",
                    f"Runs begun after the first. Good: 0 outside of deployments; {thresholds.LOOP} within a quarter of an hour, of runs that failed, are a crash loop.",
                    kind="stat",
                    warn=1.0,
                    bad=thresholds.LOOP,
                    width=4,
                    height=5,
                ),
                Panel(
                    "Findings",
                    found("rule", "{{rule}}"),
                    "short",
                    "What the rules find, over time, causes and symptoms, by severity. Good: empty.",
                    kind="state-timeline",
                    names=FOUND,
                    width=16,
                    height=7,
                    waits="a finding",
                    drill="slow-sink",
                ),
                Panel(
                    "Root causes now",
                    (Target(by("max", "rule", present(q("ledgerops_root_cause"))), "root cause"),),
                    "short",
                    "Nothing else that is found explains these. Good: empty.",
                    kind="table",
                    width=8,
                    height=7,
                    hides=("Value",),
                    waits="a finding",
                    drill="slow-sink",
                ),
            ),
        ),
        Row(
            "Throughput and pressure",
            (
                Panel(
                    "Arrival, input and capacity",
                    (
                        Target(by("sum", "query", q("ledgerops_arrival_rows_per_second")), "arrival"),
                        pace(q("ledgerops_input_rows_total"), "read"),
                        Target(by("max", "query", q("ledgerops_capacity_rows_per_second")), "capacity"),
                    ),
                    "rowsps",
                    "What arrives by the growth of the source's heads, what is read, and what the query can sustain. Good: arrival well below capacity, read equal to arrival.",
                    width=12,
                ),
                Panel(
                    "Pressure and busy",
                    (
                        Target(by("max", "query", q("ledgerops_pressure_ratio")), "pressure"),
                        Target(by("max", "query", q("ledgerops_busy_ratio")), "busy"),
                    ),
                    "percentunit",
                    f"Arrival over capacity, and the share of the time that batches take. Good: pressure below {thresholds.percent(thresholds.PRESSED)}, the lower line, and busy below {thresholds.percent(thresholds.BUSY)}.",
                    warn=thresholds.PRESSED,
                    bad=thresholds.OVERLOADED,
                    width=6,
                ),
                Panel(
                    "Rows out",
                    (
                        pace(q("ledgerops_output_rows_total"), "written"),
                        pace(q("ledgerops_rejected_rows_total"), "refused: {{reason}}", "reason"),
                    ),
                    "rowsps",
                    "Rows written, for sinks that say so, and records refused. Good: follows the rows read, none refused.",
                    width=6,
                    waits="a sink that counts its rows",
                    drill="python-bound",
                ),
            ),
        ),
        Row(
            "Batch time",
            (
                Panel(
                    "Batch time by phase",
                    (pace(q("ledgerops_batch_phase_seconds_total"), "{{phase}}", "phase"),),
                    "s",
                    "Seconds of batch time in each second, by phase. Good: add_batch dominates; latest_offset, wal_commit and commit_offsets stay thin.",
                    stacked=True,
                    width=8,
                ),
                Panel(
                    "Batch time percentiles",
                    (
                        Target(quantile(0.5, "le", BATCHES), "p50"),
                        Target(quantile(0.95, "le", BATCHES), "p95"),
                        Target(quantile(0.99, "le", BATCHES), "p99"),
                        Target(by("max", "query", q("ledgerops_trigger_interval_seconds")), "trigger"),
                    ),
                    "s",
                    "How long batches take against the trigger interval. Good: p99 below the trigger interval.",
                    width=8,
                ),
                Panel(
                    "Batch running now",
                    (
                        Target(by("max", "query", q("ledgerops_batch_running_seconds"))),
                        Target(by("max", "query", q("ledgerops_last_batch_duration_seconds")), "last batch"),
                    ),
                    "s",
                    "How long the present batch has been at work, as the watchdog sees it: it grows while a query is stuck. Good: never far above the last batch.",
                    width=8,
                ),
                Panel(
                    "Overhead",
                    (Target(by("max", "query", q("ledgerops_batch_overhead_seconds")), "fixed cost of a batch"),),
                    "s",
                    "What a batch costs without any row, by the fit of batch time over rows. Good: a small part of the trigger interval.",
                    width=8,
                    waits="enough spread in batch sizes for a fit",
                    drill="slow-sink",
                ),
                Panel(
                    "Batches",
                    (pace(q("ledgerops_batches_total")),),
                    "ops",
                    "Batches committed a second. Good: one each trigger interval while there is input.",
                    width=8,
                ),
                Panel(
                    "Time since the last sign of life",
                    (
                        Target("time() - " + by("max", "query", q("ledgerops_last_seen_timestamp_seconds"))),
                        Target(
                            "time() - " + by("max", "query", q("ledgerops_last_progress_timestamp_seconds")),
                            "since the last batch",
                        ),
                    ),
                    "s",
                    f"Since the last start, batch or word that the query is idle, and since the last batch. Good: below three trigger intervals; it is stuck when three batches and {thresholds.SILENT:g} s, the line, have passed besides.",
                    width=8,
                    warn=thresholds.SILENT,
                ),
                Panel(
                    "Where the time of a batch goes",
                    (Target(by("max", "part", q("ledgerops_batch_part_seconds")), "{{part}}"),),
                    "s",
                    "A typical recent batch, in parts that add up to it. Good: cpu and python dominate; driver, after_tasks, waiting and unclaimed stay thin.",
                    stacked=True,
                    width=24,
                ),
            ),
        ),
        *query_data.ROWS,
    ),
)
