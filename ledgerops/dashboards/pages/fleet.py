"""Fleet: every query at a glance, and one click to the one that hurts."""

from __future__ import annotations

from ledgerops.dashboards import limits
from ledgerops.dashboards.model import Column, Page, Panel, Row, Target, by, d, pace, q, rate
from ledgerops.dashboards.status import ACTIVE, NAMES, present, status

EXPECTED = by("max", "job, query", q("ledgerops_query_expected"))
ENDED = q("ledgerops_query_terminated_timestamp_seconds")

PAGE = Page(
    uid="ledgerops-fleet",
    title="ledgerops / Fleet",
    help="Every streaming query: its verdict, lag, freshness and pressure. Start here; click a query to open it.",
    rows=(
        Row(
            "Verdicts",
            (
                Panel(
                    "Queries running",
                    (Target(f"sum({ACTIVE})", "running"),),
                    "short",
                    "Queries of which a run is on. Good: as many as are expected.",
                    kind="stat",
                    width=4,
                    height=4,
                ),
                Panel(
                    "Expected and not running",
                    (
                        Target(
                            f"count({EXPECTED} == 1 unless on (job, query) "
                            # where nothing is known of any query there is no number, and above all no 0
                            f"{by('max', 'job, query', ACTIVE)} == 1) or 0 * count({EXPECTED})",
                            "down",
                        ),
                    ),
                    "short",
                    "Queries that should run and do not; no number where no driver answers. Good: 0.",
                    kind="stat",
                    bad=1,
                    width=4,
                    height=4,
                ),
                Panel(
                    "Lowest health",
                    (Target(f"min({present(q('ledgerops_health_score'))})", "lowest"),),
                    "short",
                    "The health score of the worst query, 100 with nothing found. Good: 100.",
                    kind="stat",
                    warn=limits.HEALTHY,
                    bad=limits.POOR,
                    low=True,
                    most=100,
                    width=4,
                    height=4,
                ),
                Panel(
                    "Largest lag",
                    (Target(f"max({q('ledgerops_source_lag_seconds')})", "lag"),),
                    "s",
                    "How old the oldest rows are that a query has not read yet. Good: below a few trigger intervals.",
                    kind="stat",
                    warn=limits.ageing,
                    bad=limits.stale,
                    width=4,
                    height=4,
                ),
                Panel(
                    "Highest pressure",
                    (Target(f"max({q('ledgerops_pressure_ratio')})", "pressure"),),
                    "percentunit",
                    f"Arrival over what the query can sustain. Good: below {limits.percent(limits.PRESSED)}; above {limits.percent(limits.OVERLOADED)} the backlog must grow.",
                    kind="stat",
                    warn=limits.PRESSED,
                    bad=limits.OVERLOADED,
                    width=4,
                    height=4,
                    waits="enough spread in batch sizes for a fit",
                    drill="slow-sink",
                ),
                Panel(
                    "Firing pages",
                    (
                        Target(
                            'count(ALERTS{alertstate="firing", severity="critical", job=~"$job"}) '
                            # the watchdog always fires: without it no rules are evaluated, and nobody knows
                            'or 0 * count(ALERTS{alertname="LedgerWatchdog", job=~"$job"})',
                            "pages",
                        ),
                    ),
                    "short",
                    "Critical alerts that fire now; no number where no rules are evaluated. Good: 0.",
                    kind="stat",
                    bad=1,
                    width=4,
                    height=4,
                ),
                Panel(
                    "Status",
                    (Target(by("max", "query", status()), "{{query}}"),),
                    "short",
                    "The status of each query over time, as the diagnosis sees it. Good: healthy or idle throughout.",
                    kind="state-timeline",
                    names=NAMES,
                    width=16,
                    height=9,
                    link="ledgerops-query",
                ),
                Panel(
                    "Ended",
                    (Column(by("min", "query", present(f"time() - {ENDED}")), "since", unit="s"),),
                    "short",
                    "Queries of which no run is on, and since when. Good: only those that were stopped on purpose.",
                    kind="table",
                    width=8,
                    height=9,
                    link="ledgerops-query",
                    waits="a query that ended",
                    drill="crash",
                ),
                Panel(
                    "Queries",
                    (
                        Column(by("max", "query", status()), "status", names=NAMES),
                        Column(
                            by("min", "query", present(q("ledgerops_health_score"))),
                            "health",
                            warn=limits.HEALTHY,
                            bad=limits.POOR,
                            low=True,
                        ),
                        Column(
                            by("max", "query", q("ledgerops_source_lag_seconds")),
                            "lag",
                            unit="s",
                            warn=limits.ageing,
                            bad=limits.stale,
                        ),
                        Column(by("sum", "query", q("ledgerops_source_backlog_offsets")), "backlog"),
                        Column(
                            by("max", "query", q("ledgerops_pressure_ratio")),
                            "pressure",
                            unit="percentunit",
                            warn=limits.PRESSED,
                            bad=limits.OVERLOADED,
                        ),
                        Column(
                            by("max", "query", q("ledgerops_busy_ratio")), "busy", unit="percentunit", warn=limits.BUSY
                        ),
                        Column(by("sum", "query", rate(q("ledgerops_input_rows_total"))), "read", unit="rowsps"),
                    ),
                    "short",
                    f"One row a query. Good: health {limits.HEALTHY:g}, lag near 0, pressure below {limits.percent(limits.PRESSED)}, busy below {limits.percent(limits.BUSY)}.",
                    kind="table",
                    width=16,
                    height=11,
                    link="ledgerops-query",
                ),
                Panel(
                    "Root causes now",
                    (Target(by("max", "query, rule", present(q("ledgerops_root_cause"))), "root cause"),),
                    "short",
                    "What the diagnosis names: nothing else that is found explains it. Good: empty.",
                    kind="table",
                    width=8,
                    height=11,
                    link="ledgerops-query",
                    hides=("Value",),
                    waits="a finding",
                    drill="slow-sink",
                ),
            ),
        ),
        Row(
            "Load",
            (
                Panel(
                    "Rows read",
                    (pace(q("ledgerops_input_rows_total")),),
                    "rowsps",
                    "Rows that each query reads. Good: follows what arrives.",
                    width=8,
                ),
                Panel(
                    "Lag",
                    (Target(by("max", "query", q("ledgerops_source_lag_seconds"))),),
                    "s",
                    "Age of the oldest unread rows. Good: below a few trigger intervals; a steady rise is falling behind.",
                    warn=limits.ageing,
                    bad=limits.stale,
                    width=8,
                    link="ledgerops-query",
                ),
                Panel(
                    "Pressure",
                    (Target(by("max", "query", q("ledgerops_pressure_ratio"))),),
                    "percentunit",
                    f"Arrival over sustainable capacity. Good: below {limits.percent(limits.PRESSED)}.",
                    warn=limits.PRESSED,
                    bad=limits.OVERLOADED,
                    width=8,
                    link="ledgerops-query",
                    waits="enough spread in batch sizes for a fit",
                    drill="slow-sink",
                ),
                Panel(
                    "Busy",
                    (Target(by("max", "query", q("ledgerops_busy_ratio"))),),
                    "percentunit",
                    f"Share of the time that batches take. Good: below {limits.percent(limits.BUSY)}; at 100 % batches run back to back.",
                    warn=limits.BUSY,
                    most=1.0,
                    width=8,
                    link="ledgerops-query",
                ),
                Panel(
                    "Health",
                    (Target(by("min", "query", present(q("ledgerops_health_score")))),),
                    "short",
                    "100 with nothing found, less by each finding's severity and confidence. Good: 100.",
                    warn=limits.HEALTHY,
                    bad=limits.POOR,
                    low=True,
                    most=100,
                    width=8,
                    link="ledgerops-query",
                ),
                Panel(
                    "CPU of the drivers' machines",
                    (Target(by("max", "instance", d("ledgerops_host_cpu_busy_ratio")), "{{instance}}"),),
                    "percentunit",
                    f"All cores of the driver's machine. Good: below {limits.percent(limits.CPU)}; near 100 % every query on it slows down.",
                    warn=limits.CPU,
                    most=1.0,
                    width=8,
                ),
            ),
        ),
    ),
)
