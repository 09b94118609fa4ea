"""Load test: what the generator offers, whether it can be trusted, and what the queries make of it."""

from __future__ import annotations

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import Page, Panel, Row, Target, by, d, g, over, pace, q, quantile, rate
from ledgerops.mixin.dashboards.status import FOUND, found

LATENESS = g("ledgerops_load_lateness_seconds_bucket")
BATCHES = q("ledgerops_batch_duration_seconds_bucket")
PLANNED = "a load plan that runs with --metrics-port"

PAGE = Page(
    uid="ledgerops-load",
    title="ledgerops / Load test",
    help="A load plan and the queries under it on one time axis: what was offered, whether the generator kept up, and "
    "how rate, lag, batch time and findings follow. The generator has a scrape job of its own: choose both, or all.",
    plans=True,
    rows=(
        Row(
            "Offered and processed",
            (
                Panel(
                    "Offered, acknowledged and read",
                    (
                        Target(by("sum", "plan", g("ledgerops_load_planned_rate")), "{{plan}} planned"),
                        pace(g("ledgerops_load_acknowledged_records_total"), "{{plan}} acknowledged", "plan"),
                        pace(q("ledgerops_input_rows_total"), "{{query}} read"),
                    ),
                    "rowsps",
                    "What the plan asks for, what the target confirmed, and what each query reads. Good: one line; a query below it builds up a backlog.",
                    width=16,
                    height=9,
                ),
                Panel(
                    "Valid",
                    (Target(by("min", "plan", g("ledgerops_load_valid")), "{{plan}}"),),
                    "short",
                    "Whether the run can be trusted: no, once the generator itself was the bottleneck. Good: yes throughout; else the run says nothing about the queries.",
                    kind="state-timeline",
                    names=(("0", "bad:invalid"), ("1", "good:valid")),
                    width=8,
                    height=9,
                    waits=PLANNED,
                    drill="load",
                ),
            ),
        ),
        Row(
            "The generator",
            (
                Panel(
                    "Acknowledged of planned",
                    (
                        Target(
                            over(
                                by("sum", "plan", rate(g("ledgerops_load_acknowledged_records_total"))),
                                by("sum", "plan", rate(g("ledgerops_load_planned_records_total"))),
                            ),
                            "{{plan}}",
                        ),
                    ),
                    "percentunit",
                    f"Records that the target confirmed over those that were due. Good: 100 %; below {thresholds.percent(thresholds.SENT)} the run is not valid.",
                    bad=thresholds.SENT,
                    low=True,
                    width=6,
                    waits=PLANNED,
                    drill="load",
                ),
                Panel(
                    "Lateness",
                    (
                        Target(quantile(0.5, "plan, le", LATENESS), "{{plan}} p50"),
                        Target(quantile(0.99, "plan, le", LATENESS), "{{plan}} p99"),
                    ),
                    "s",
                    f"How long after its scheduled time a record was handed over: latencies count from the schedule. Good: p99 below {thresholds.millis(thresholds.LATE)}.",
                    bad=thresholds.LATE,
                    width=6,
                    waits=PLANNED,
                    drill="load",
                ),
                Panel(
                    "Backpressure",
                    (pace(g("ledgerops_load_backpressure_seconds_total"), "{{plan}}", "plan"),),
                    "s",
                    "Seconds in each second in which the generator waited for room in the client's queue: the target does not take more. Good: 0.",
                    warn=thresholds.ANY,
                    width=6,
                    waits=PLANNED,
                    drill="load",
                ),
                Panel(
                    "Produced and refused",
                    (
                        pace(g("ledgerops_load_produced_records_total"), "{{plan}} produced", "plan"),
                        pace(g("ledgerops_load_refused_records_total"), "{{plan}} refused", "plan"),
                    ),
                    "rowsps",
                    "Records handed to the client, and those that the target refused or that nobody knows of. Good: none refused.",
                    width=6,
                    waits=PLANNED,
                    drill="load",
                ),
            ),
        ),
        Row(
            "The queries under it",
            (
                Panel(
                    "Processing rate and capacity",
                    (
                        Target(by("sum", "query", q("ledgerops_processed_rows_per_second")), "{{query}} processes"),
                        Target(by("max", "query", q("ledgerops_capacity_rows_per_second")), "{{query}} capacity"),
                    ),
                    "rowsps",
                    "Rows a second of batch time, and what the query can sustain by the fit over its batches. Good: capacity above what is offered.",
                ),
                Panel(
                    "Lag",
                    (Target(by("max", "query", q("ledgerops_source_lag_seconds"))),),
                    "s",
                    "Age of the oldest unread row. Good: flat; a steady rise under a steady load is more than the query can sustain.",
                    warn=thresholds.ageing,
                    bad=thresholds.stale,
                    link="ledgerops-query",
                ),
                Panel(
                    "Batch duration",
                    (
                        Target(quantile(0.5, "query, le", BATCHES), "{{query}} p50"),
                        Target(quantile(0.99, "query, le", BATCHES), "{{query}} p99"),
                        Target(by("max", "query", q("ledgerops_trigger_interval_seconds")), "{{query}} trigger"),
                    ),
                    "s",
                    "How long batches take against their trigger interval. Good: p99 below the trigger interval.",
                    link="ledgerops-query",
                ),
                Panel(
                    "Backlog",
                    (Target(by("sum", "query", q("ledgerops_source_backlog_offsets"))),),
                    "short",
                    "Offsets not read yet. Good: returns to near 0 with each batch.",
                ),
                Panel(
                    "Findings",
                    found("query, rule", "{{query}}: {{rule}}"),
                    "short",
                    "What the rules find while the load is on. Good: empty below the sustainable rate.",
                    kind="state-timeline",
                    names=FOUND,
                    waits="a finding",
                    drill="slow-sink",
                ),
                Panel(
                    "CPU of the drivers' machines",
                    (Target(by("max", "instance", d("ledgerops_host_cpu_busy_ratio")), "{{instance}}"),),
                    "percentunit",
                    f"A generator on the driver's machine takes its cores. Good: below {thresholds.percent(thresholds.CPU)}.",
                    warn=thresholds.CPU,
                    most=1.0,
                ),
            ),
        ),
    ),
)
