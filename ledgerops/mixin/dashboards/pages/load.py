"""Load test: what the generator offers, whether it can be trusted, and what the queries make of it."""

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import (
    EACH,
    EACH_DRIVER,
    ONE,
    Page,
    Panel,
    Row,
    Target,
    by,
    d,
    g,
    largest,
    over,
    per_second,
    q,
    quantile,
    rate,
    worst,
)
from ledgerops.mixin.dashboards.status import FOUND_OR_NONE, found, or_none

LATENESS = g("ledgerops_load_lateness_seconds_bucket")
BATCHES = q("ledgerops_batch_duration_seconds_bucket")
PLANNED = "a load plan that runs with --metrics-port"
VALID = or_none(by("min", "plan", g("ledgerops_load_valid")), d("ledgerops_build_info"), "plan", "no load plan", -1)
ACKNOWLEDGED = by("sum", "plan", rate(g("ledgerops_load_acknowledged_records_total")))
DUE = by("sum", "plan", rate(g("ledgerops_load_planned_records_total")))
FINDINGS = or_none(
    worst(found(f"{EACH}, rule"), f"{EACH}, rule", most=10), q("ledgerops_query_active"), "rule", "no finding"
)

PAGE = Page(
    uid="ledgerops-load", title="ledgerops / Load test",
    help="A load plan and the queries under it on one time axis: what was offered, whether the generator kept up, and "
    "how rate, lag, batch time and findings follow. The generator has a scrape job of its own: choose both, or all.",
    load=True,
    rows=(
        Row(
            "Is the planned load offered, and do the queries keep up?",
            (
                Panel(
                    "Offered, acknowledged and read",
                    (
                        Target(by("sum", "plan", g("ledgerops_load_planned_rate")), "{{plan}} planned"),
                        per_second(g("ledgerops_load_acknowledged_records_total"), "{{plan}} acknowledged", "plan"),
                        per_second(q("ledgerops_input_rows_total"), "{{query}} read", ONE),
                    ),
                    "rowsps",
                    "What the plan asks for, what the target acknowledged, and what each query reads. Good: one line; a query below it builds a backlog.",
                    width=16, height=9,
                ),
                Panel(
                    "Is the run valid?", (Target(VALID, "{{plan}}"),), "short",
                    "Whether the run can be trusted: invalid once the generator itself was the bottleneck. Good: valid throughout; otherwise the results do not apply to the queries.",
                    kind="state-timeline",
                    names=(("-1", "unknown:not measured"), ("0", "bad:invalid"), ("1", "good:valid")), width=8,
                    height=9, waits=PLANNED, drill="load",
                ),
            ),
        ),
        Row(
            "Can the run be trusted?",
            (
                Panel(
                    "Acknowledged of planned", (Target(over(ACKNOWLEDGED, DUE), "{{plan}}"),), "percentunit",
                    f"Records that the target acknowledged over those that were due. Good: 100 %; below {thresholds.percent(thresholds.SENT_SHARE)} the run is not valid.",
                    bad=thresholds.SENT_SHARE, low=True, waits=PLANNED, drill="load",
                ),
                Panel(
                    "Lateness",
                    (
                        Target(quantile(0.5, "plan, le", LATENESS), "{{plan}} p50"),
                        Target(quantile(0.99, "plan, le", LATENESS), "{{plan}} p99"),
                    ),
                    "s",
                    f"How long after its scheduled time a record was sent; latencies count from the schedule. Good: p99 below {thresholds.millis(thresholds.LATE_SECONDS)}.",
                    bad=thresholds.LATE_SECONDS, waits=PLANNED, drill="load",
                ),
                Panel(
                    "Backpressure", (per_second(g("ledgerops_load_backpressure_seconds_total"), "{{plan}}", "plan"),),
                    "s",
                    "Seconds in each second in which the generator waited for room in the client's queue because the target took no more. Good: 0.",
                    warn=thresholds.ANY, waits=PLANNED, drill="load",
                ),
                Panel(
                    "Produced and rejected",
                    (
                        per_second(g("ledgerops_load_produced_records_total"), "{{plan}} produced", "plan"),
                        per_second(g("ledgerops_load_refused_records_total"), "{{plan}} rejected", "plan"),
                    ),
                    "rowsps",
                    "Records passed to the client, and those that the target rejected or whose fate is unknown. Good: none rejected.",
                    waits=PLANNED, drill="load",
                ),
            ),
        ),
        Row(
            "What do the queries make of it?",
            (
                Panel(
                    "Processing rate and capacity",
                    (
                        Target(by("sum", ONE, q("ledgerops_processed_rows_per_second")), "{{query}} processes"),
                        Target(by("max", ONE, q("ledgerops_capacity_rows_per_second")), "{{query}} capacity"),
                    ),
                    "rowsps",
                    "Rows a second of batch time, and what the query can sustain by the fit over its batches. Good: capacity above what is offered.",
                ),
                Panel(
                    "Lag, five largest", (largest("max", EACH, q("ledgerops_query_lag_seconds")),), "s",
                    "Age of the oldest unread row. Good: flat; a steady rise under a steady load is more than the query can sustain.",
                    warn=thresholds.ageing_seconds, bad=thresholds.stale_seconds, link="ledgerops-query",
                ),
                Panel(
                    "Batch duration",
                    (
                        Target(quantile(0.5, f"{ONE}, le", BATCHES), "{{query}} p50"),
                        Target(quantile(0.99, f"{ONE}, le", BATCHES), "{{query}} p99"),
                        Target(by("max", ONE, q("ledgerops_trigger_interval_seconds")), "{{query}} trigger"),
                    ),
                    "s", "How long batches take against their trigger interval. Good: p99 below the trigger interval.",
                    link="ledgerops-query",
                ),
                Panel(
                    "Backlog, five largest", (largest("sum", EACH, q("ledgerops_query_backlog_offsets")),), "short",
                    "Offsets not read yet. Good: returns to near 0 with each batch.",
                ),
                Panel(
                    "Findings, ten worst", (Target(FINDINGS, "{{query}} {{rule}}"),), "short",
                    "What the rules find while the load is on. Good: empty below the sustainable rate.",
                    kind="state-timeline", names=FOUND_OR_NONE, waits="a finding", drill="slow-sink",
                ),
                Panel(
                    "CPU of the drivers' machines, five highest",
                    (largest("max", EACH_DRIVER, d("ledgerops_host_cpu_busy_ratio"), "{{instance}}"),), "percentunit",
                    f"A generator on the driver's machine takes its cores. Good: below {thresholds.percent(thresholds.CPU)}.",
                    warn=thresholds.CPU, most=1.0,
                ),
            ),
        ),
    ),
)  # fmt: skip
