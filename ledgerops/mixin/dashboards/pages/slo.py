"""SLO and alerts: what fires, what to do about it, and how much of the error budget is left."""

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import (
    ALERTING,
    BUDGET,
    ONE,
    Column,
    Label,
    Page,
    Panel,
    Row,
    Target,
    by,
    elapsed,
    largest,
    recorded,
    worst,
)
from ledgerops.mixin.dashboards.panels import OPEN_PROBLEM, OPEN_QUERY_OF_ALERT
from ledgerops.mixin.dashboards.status import FOUND_OR_NONE, or_none, severity

FIRING = f'ALERTS{{alertstate="firing", alertname!="LedgerWatchdog", [severity], {ALERTING}}}'
SINCE = f'ALERTS_FOR_STATE{{alertname!="LedgerWatchdog", {ALERTING}}}'
ALERT = "alertname, problem, job, app, instance, query"
WATCHDOG = 'ALERTS{alertname="LedgerWatchdog", job=~"$job"}'  # it fires always: the rules are evaluated
TIMES_OF = "alertname, app, query, instance"
# without its prefix a name is not cut at the left
TIMES = f'label_replace({by("max", TIMES_OF, severity(FIRING, least=2))}, "alertname", "$1", "alertname", "Ledger(.*)")'
LEFT = by("min", ONE, recorded("query:freshness_budget:ratio"))
FIRING_FOR = by("max", ALERT, f"(time() - {SINCE}) and ignoring (alertstate) {FIRING.replace(' [severity],', '')}")
FIRED = or_none(worst(TIMES, TIMES_OF, most=14), WATCHDOG, "alertname", "no alert")


def burn(window: str) -> Target:
    """How many times faster than allowed the chosen queries burn their budget, at worst."""
    return Target(f"max({recorded(f'query:freshness_bad:ratio_{window}')}) / {BUDGET}", f"over {window}")


PAGE = Page(
    uid="ledgerops-slo", title="ledgerops / SLO and alerts",
    help="The alerts that fire with their runbooks, and the freshness objective of each query with its error budget.",
    rows=(
        Row(
            "Which alerts fire, and what do I do?",
            (
                Panel(
                    "Firing alerts, critical first",
                    (
                        Column(
                            or_none(by("max", ALERT, severity(FIRING)), WATCHDOG, "app", "no alert is firing"),
                            "severity", names=FOUND_OR_NONE, cell="background", pixels=110,
                        ),
                        elapsed(FIRING_FOR, "firing for"),
                    ),
                    "short",
                    "Every alert that fires now, with its runbook and the query's page one click away. Good: none.",
                    kind="table",
                    labels=(
                        Label("alertname", "alert", 230, (OPEN_PROBLEM,)),
                        Label("query", "query", 250, (OPEN_QUERY_OF_ALERT,)), Label("app", "application", 250),
                        Label("instance", "driver", None), Label("problem", "problem", hidden=True),
                    ),
                    order=("severity", "firing for"), width=24, height=9, empty="alert rules are not evaluated",
                    waits="an alert", drill="crash",
                ),
            ),
        ),
        Row(
            "How much of the error budget is left?",
            (
                Panel(
                    "Error budget left, ten lowest", (Target(f"sort(bottomk(10, {LEFT}))", "{{query}} {{app}}"),),
                    "percentunit",
                    f"What is left of the period's allowance of bad time; below 0 the objective is missed. Good: above {thresholds.percent(thresholds.BUDGET_LEFT)}.",
                    kind="bargauge", warn=thresholds.BUDGET_LEFT, bad=0.0, low=True, most=1.0, height=9,
                    empty="the recording rules are not evaluated",
                ),
                Panel(
                    "Burn rate of the chosen queries", (burn("5m"), burn("1h"), burn("6h")), "short",
                    f"How many times faster than allowed the worst of the chosen queries burns its budget. Good: below 1; at {thresholds.FAST_BURN:g} over an hour LedgerFreshnessPage fires.",
                    warn=1.0, bad=thresholds.FAST_BURN, height=9, empty="the recording rules are not evaluated",
                ),
            ),
        ),
        Row(
            "Are results fresh?",
            (
                Panel(
                    "Freshness, five oldest",
                    (largest("max", ONE, recorded("query:freshness:seconds"), "{{query}} {{app}}"),), "s",
                    "Age of the oldest unread row, or the time since the query was last heard of. Good: below the objective.",
                    bad=thresholds.stale_seconds, link="ledgerops-query", empty="no query is running",
                ),
                Panel(
                    "Bad time in the last hour, five largest",
                    (largest("max", ONE, recorded("query:freshness_bad:ratio_1h"), "{{query}} {{app}}"),),
                    "percentunit",
                    "Share of the last hour in which results were too old or the query was not running. Good: 0; from the upper line on LedgerFreshnessPage fires.",
                    warn=thresholds.slow_burn, bad=thresholds.fast_burn, most=1.0, link="ledgerops-query",
                    empty="the recording rules are not evaluated",
                ),
            ),
        ),
        Row(
            "When did alerts fire?",
            (
                Panel(
                    "Critical alerts and warnings, fourteen worst",
                    (Target(FIRED, "{{alertname}} {{query}}{{instance}}"),), "short",
                    "When each alert fired; names without the prefix Ledger. Good: none.",
                    kind="state-timeline", names=FOUND_OR_NONE, width=24, height=9,
                    empty="alert rules are not evaluated", waits="an alert", drill="crash",
                ),
            ),
        ),
    ),
)  # fmt: skip
