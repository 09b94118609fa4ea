"""alerts/tests: promtool's tests of the rules, from the cases that stand beside each alert."""

import re
from collections.abc import Mapping
from typing import Any

from ledgerops.mixin.alerts.model import Alert, Case, of
from ledgerops.mixin.rule_files import FILES, READS, groups
from ledgerops.mixin.site import Site, duration
from ledgerops.mixin.yaml_text import document

STEP = "15s"
INSTANCE, QUERY = "driver:9464", "daily_counts"


def test_files(site: Site) -> Mapping[str, str]:
    """`<group>.yaml` -> what `promtool test rules` reads; each file loads its own rules and what they read."""
    return {
        f"{name}.yaml": document(
            {
                "rule_files": [f"../rules/{each}.yaml" for each in (*READS.get(name, ()), name)],
                "evaluation_interval": duration(site.evaluation_seconds),
                "group_eval_order": evaluated(name, site),
                "tests": [_test(alert, case, site) for alert in alerts for case in alert.cases],
            }
        )
        for name, alerts in FILES.items()
    }


def evaluated(name: str, site: Site) -> list[str]:
    """The groups behind one file in their order; promtool takes a random one otherwise."""
    return [group["name"] for each in (*READS.get(name, ()), name) for group in groups(each, site)]


def _test(alert: Alert, case: Case, site: Site) -> dict[str, Any]:
    query = {"query": QUERY} if alert.of_query else {}
    labels = {"job": site.job, "instance": INSTANCE, **query}
    # only the expression is tested, with the alert's own series: its texts hold values that depend on the evaluation
    matcher = f'ALERTS{{alertname="{alert.name}", alertstate="firing"}}'
    return {
        "name": f"{alert.name} {case.shows}: {case.title}",
        "interval": STEP,
        "input_series": [
            {"series": series_named(name, labels), "values": values} for name, values in case.series.items()
        ],
        "promql_expr_test": [
            {
                "expr": f"count({matcher})",
                "eval_time": duration(case.at),
                "exp_samples": [{"labels": "{}", "value": 1}] if case.fires else [],
            }
        ],
    }  # fmt: skip


def series_named(name: str, labels: dict[str, str]) -> str:
    """`name{more}` with the labels that every series has; what `more` says wins."""
    family, _, more = name.partition("{")
    return of(family, **labels | dict(re.findall(r'(\w+)="([^"]*)"', more)))
