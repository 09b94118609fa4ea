"""Fleet: every query at a glance, the worst first, with what to do about it."""

from ledgerops.mixin import thresholds
from ledgerops.mixin.alerts.promql import LAST_SEEN, SEEN
from ledgerops.mixin.dashboards.layout import CRITICAL
from ledgerops.mixin.dashboards.model import (
    ALERTING,
    EACH,
    ONE,
    Column,
    Label,
    Page,
    Panel,
    Row,
    Target,
    by,
    d,
    largest,
    q,
    rate,
    recorded,
    worst,
)
from ledgerops.mixin.dashboards.panels import OPEN_QUERY, OPEN_RULE, OPEN_SLO, OPEN_STATE
from ledgerops.mixin.dashboards.status import ACTIVE, LOST, NAMES, REMEMBERED, last, present, rows, status

EXPECTED = q("ledgerops_query_expected")
HEARD = last(SEEN, LAST_SEEN)
LAG = q("ledgerops_query_lag_seconds")
CAUSE = q("ledgerops_root_cause_info", 'rank="1"')
SINCE = q("ledgerops_root_cause_since_timestamp_seconds")
UP = 'up{job=~"$job", instance=~"$instance"}'
DRIVERS = by("max", "job, instance", f"last_over_time({d('ledgerops_build_info')}[{REMEMBERED}])")
# a driver that answers and has no run of an expected query, or one that stopped answering while the query ran
OF_LOST = by("max", EACH, LOST)
for label, text in (
    ("summary", "Its driver stopped answering."),
    ("action", "Check the driver's process."),
    ("rule", "README"),  # the list of all rules: no rule sees a driver that is gone
):
    OF_LOST = f'label_replace({OF_LOST}, "{label}", "{text}", "", "")'
MISSING = by("max", ONE, f"(({EXPECTED} == 1) unless on ({ONE}) {ACTIVE} == 1) or {LOST}")
KNOWN = by("max", ONE, f"({EXPECTED} == 1) or {LOST}")
PAGES_SINCE = f'ALERTS_FOR_STATE{{severity="critical", {ALERTING}}}'
MISSING_LONGEST = (
    f"topk(1, time() - {by('max', ONE, HEARD)} and on ({ONE}) {MISSING} or on ({ONE}) -1 * {MISSING}) or on () "
    f'label_replace(0 * sum({KNOWN}), "query", "every expected query", "", "")'
)
FIRING_LONGEST = (
    f"topk(1, (time() - {PAGES_SINCE}) and ignoring (alertstate) {CRITICAL}) or on () label_replace(0 * "
    'count(ALERTS{alertname="LedgerWatchdog", job=~"$job"}), "alertname", "No critical alert", "", "")'
)
# one that pushes by OTLP has no target, and answers while its data come
PUSHED = by("max", "job, instance", d("ledgerops_build_info"))
ANSWERED = (
    f"({by('max', 'job, instance', UP)} and on (job, instance) {DRIVERS} or on (job, instance) {PUSHED} "
    f"or on (job, instance) 0 * {DRIVERS})"
)
HEADLINES = (
    Panel(
        "Queries running",
        (
            Target(f"sum({by('max', ONE, ACTIVE)}) or 0 * count({KNOWN})", "running"),
            Target(f"count({KNOWN})", "expected"),
        ),
        "short",
        "Queries with an active run, and queries that should have one: those that a driver has started or is configured to expect. Good: both numbers are equal.",
        kind="stat", show="both", width=6, height=4, empty="no driver answers",
    ),
    Panel(
        "Missing longest", (Target(MISSING_LONGEST, "{{query}}"),), "s",
        "The query without an active run for which nothing has been heard for the longest time. Good: every expected query is running.",
        kind="stat", show="both", names=(("0", "good:is running"), ("-1", "bad:has never run")), bad=thresholds.ANY,
        width=6, height=4, empty="no driver answers",
    ),
    Panel(
        "Longest lag", (Target(f"topk(1, {by('max', EACH, LAG)})", "{{query}}"),), "s",
        "The query with the oldest unread row. Good: below half of the freshness objective.", kind="stat", show="both",
        warn=thresholds.ageing_seconds, bad=thresholds.stale_seconds, width=6, height=4, empty="lag cannot be measured",
    ),
    Panel(
        "Critical alert firing longest", (Target(FIRING_LONGEST, "{{alertname}} {{query}}"),), "s",
        "The critical alert that has been firing for the longest time. Good: none. Grey: Prometheus does not evaluate the rules.",
        kind="stat", show="both", names=(("0", "good:is firing"),), bad=thresholds.ANY, width=6, height=4,
        empty="alert rules are not evaluated",
    ),
)  # fmt: skip

TABLE = Panel(
    "Queries, worst first",
    (
        Column(by("max", EACH, status()), "status", names=NAMES, cell="background", pixels=105),
        Column(
            f"{by('max', f'{EACH}, rule, summary, action', present(CAUSE))} or on ({EACH}) {OF_LOST}", "cause known",
            cell="hidden",
        ),
        Column(
            f"time() - ({by('min', EACH, present(SINCE))} or on ({EACH}) {by('max', EACH, HEARD)} and on ({EACH}) {LOST})",
            "since", unit="s", pixels=80,
        ),
        Column(
            by("max", EACH, LAG), "lag", unit="s", warn=thresholds.ageing_seconds, bad=thresholds.stale_seconds,
            pixels=80,
        ),
        Column(by("max", EACH, q("ledgerops_backlog_drain_seconds")), "clears in", unit="s", pixels=80),
        Column(
            by("max", EACH, q("ledgerops_busy_ratio")), "busy", unit="percentunit", warn=thresholds.BUSY, cell="gauge",
            pixels=100,
        ),
        Column(
            f"{rows()} * on ({ONE}) group_left () {by('min', ONE, recorded('query:freshness_budget:ratio'))}",
            "budget left", unit="percentunit", warn=thresholds.BUDGET_LEFT, bad=0.0, low=True, pixels=95,
        ),
    ),
    "short",
    f"One row for each query, the worst status first. Cause and first step come from the diagnosis. Busy is the share of the time that batches take; budget is what is left of the freshness objective. Good: healthy or idle, lag near 0, busy below {thresholds.percent(thresholds.BUSY)}.",
    kind="table",
    labels=(
        Label("query", "query", 160, (OPEN_QUERY, OPEN_STATE, OPEN_SLO)),
        Label("summary", "cause", 225, (OPEN_RULE,), wrap=True), Label("action", "do first", None, wrap=True),
        Label("rule", "rule", hidden=True), Label("app", "app", hidden=True), Label("instance", "driver", 120),
    ),
    order=("status", "lag"), width=24, height=12, empty="no driver answers, and none has in the last 12 hours",
)  # fmt: skip

PAGE = Page(
    uid="ledgerops-fleet", title="ledgerops / Fleet",
    help="Every streaming query, the worst first, with its cause and what to do. Start here; click a query to open it.",
    rows=(
        Row("Is every query running and on time?", HEADLINES),
        Row("Which query needs attention first, and what should I do?", (TABLE,)),
        Row(
            "Since when?",
            (
                Panel(
                    "Status over time, twelve worst",
                    (largest("max", EACH, status(), "{{query}} {{instance}}", most=12),), "short",
                    "The status of the queries whose status was the worst in this time. A query whose driver stopped answering is lost. Good: healthy or idle throughout.",
                    kind="state-timeline", names=NAMES, width=24, height=9, link="ledgerops-query",
                    empty="no driver answers, and none has in the last 12 hours",
                ),
                Panel(
                    "Drivers, the ten that answered least",
                    (Target(worst(ANSWERED, "job, instance", least=True, most=10), "{{instance}}"),), "short",
                    "Whether Prometheus can scrape each driver; those that did not answer come first. A driver that was removed from the targets is shown for 12 hours. Good: up throughout.",
                    kind="state-timeline", names=(("0", "bad:lost"), ("1", "good:up")), width=24, height=8,
                    empty="no driver answers, and none has in the last 12 hours",
                ),
            ),
        ),
        Row(
            "Is data flowing?",
            (
                Panel(
                    "Rows read, five largest",
                    (largest("sum", EACH, rate(q("ledgerops_input_rows_total")), "{{query}} {{instance}}"),), "rowsps",
                    "Rows that each query reads. Good: follows what arrives.", link="ledgerops-query",
                ),
                Panel(
                    "Lag, five largest", (largest("max", EACH, LAG, "{{query}} {{instance}}"),), "s",
                    "Age of the oldest unread row. Good: flat; a steady rise means that the query is falling behind.",
                    warn=thresholds.ageing_seconds, bad=thresholds.stale_seconds, link="ledgerops-query",
                    empty="lag cannot be measured",
                ),
            ),
        ),
    ),
)  # fmt: skip
