"""SLO: how fresh results are, how fast the error budget burns, and what fires."""

from __future__ import annotations

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import BUDGET, Page, Panel, Row, Target, by

J = 'job=~"$job", query=~"$query"'  # recording rules keep job and query only

PAGE = Page(
    uid="ledgerops-slo",
    title="ledgerops / SLO and alerts",
    help="The freshness objective of each query, its error budget, and the alerts that fire.",
    rows=(
        Row(
            "Freshness",
            (
                Panel(
                    "Freshness",
                    (Target(by("max", "query", f"query:freshness:seconds{{{J}}}")),),
                    "s",
                    "Age of the oldest unread row, or the time since the last sign of life. Good: below the objective.",
                    bad=thresholds.stale,
                    width=12,
                ),
                Panel(
                    "Bad time in the last hour",
                    (Target(by("max", "query", f"query:freshness_bad:ratio_1h{{{J}}}")),),
                    "percentunit",
                    "Share of the last hour in which results were too old or the query did not run. Good: 0; from the upper line on it pages.",
                    warn=thresholds.slow_burn,
                    bad=thresholds.fast_burn,
                    most=1.0,
                    width=6,
                ),
                Panel(
                    "Error budget left",
                    (Target(by("min", "query", f"query:freshness_budget:ratio{{{J}}}")),),
                    "percentunit",
                    f"What is left of the period's allowance of bad time; below 0 the objective is missed. Good: above {thresholds.percent(thresholds.SPENT)}.",
                    warn=thresholds.SPENT,
                    bad=0.0,
                    low=True,
                    least=None,
                    most=1.0,
                    width=6,
                ),
                Panel(
                    "Burn rate",
                    (
                        Target(
                            by("max", "query", f"query:freshness_bad:ratio_5m{{{J}}}") + f" / {BUDGET}", "{{query}} 5 m"
                        ),
                        Target(
                            by("max", "query", f"query:freshness_bad:ratio_1h{{{J}}}") + f" / {BUDGET}", "{{query}} 1 h"
                        ),
                        Target(
                            by("max", "query", f"query:freshness_bad:ratio_6h{{{J}}}") + f" / {BUDGET}", "{{query}} 6 h"
                        ),
                    ),
                    "short",
                    f"How many times faster than allowed the budget burns. Good: below 1; at {thresholds.FAST_BURN:g} over an hour it pages.",
                    warn=1.0,
                    bad=thresholds.FAST_BURN,
                    width=12,
                ),
                Panel(
                    "Firing alerts",
                    (Target('ALERTS{alertstate="firing", job=~"$job"}', "firing"),),
                    "short",
                    "Alerts that fire now. LedgerWatchdog always does. Good: nothing else.",
                    kind="table",
                    hides=("Value", "alertstate", "job"),
                    width=12,
                ),
            ),
        ),
        Row(
            "Alerts over time",
            (
                Panel(
                    "Alerts",
                    (
                        Target(
                            'max by (alertname, query) (ALERTS{alertstate="firing", job=~"$job", severity!="info"})',
                            "{{alertname}} {{query}}",
                        ),
                    ),
                    "short",
                    "When which symptom fired. Good: empty.",
                    kind="state-timeline",
                    names=(("1", "bad:firing"),),
                    width=24,
                    waits="an alert",
                    drill="crash",
                ),
            ),
        ),
    ),
)
