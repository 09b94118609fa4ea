"""The long windows of freshness, which are made of one sample every five minutes."""

from __future__ import annotations

import subprocess

import pytest
import yaml

from ledgerops.mixin.alerts.freshness import BAD, STEP, budget, records
from ledgerops.mixin.rule_files import groups, rule_files
from ledgerops.mixin.site import Site
from tests.programs import needed

SITE = Site()
LABELS = 'job="ledgerops", app="bank", instance="a:1", query="q"'
SERIES = {  # 20 minutes bad from 1:00, and 100 s from 2:33:20 on
    "ledgerops_last_seen_timestamp_seconds": "0+15x2000",
    "ledgerops_query_active": "1x2000",
    "ledgerops_query_expected": "1x2000",
    "ledgerops_query_lag_seconds": "0x239 120x79 0x293 120x6 0x400",
}


@pytest.mark.parametrize("at", [3000, 4500, 9600, 12000], ids=["good", "in the middle", "after the second", "later"])
@pytest.mark.parametrize(
    ("recorded", "exact"),
    [
        ("query:freshness_bad:ratio_6h", f"sum_over_time({BAD}[6h]) / 1440"),
        ("query:freshness_bad:ratio_1d", f"sum_over_time({BAD}[1d]) / 5760"),
        ("query:freshness_bad:ratio_3d", f"sum_over_time({BAD}[3d]) / 17280"),
        ("query:freshness_budget:ratio", f"1 - sum_over_time({BAD}[30d]) / 172800 / 0.01"),
    ],
)
def test_at_the_end_of_a_step_a_long_window_has_the_share_of_all_its_seconds(rules, recorded, exact, at):
    assert holds(rules, f"abs({recorded} - ({exact})) < bool 1e-9", at)


@pytest.mark.parametrize("after", [15, 120, 285])
def test_between_two_steps_a_long_window_is_at_most_five_minutes_behind(rules, after):
    behind = f"(sum_over_time({BAD}[6h]) - 1440 * query:freshness_bad:ratio_6h) * 15"

    assert holds(rules, f"{behind} >= bool 0", 3600 + after)
    assert holds(rules, f"{behind} <= bool 300", 3600 + after)


def test_a_step_has_one_sample(rules):
    assert holds(rules, f"count_over_time({STEP}[59m59s]) == bool 12", 7200)


def test_no_rule_reads_more_than_a_day_of_single_evaluations():
    for name, expression in (*records(SITE), *budget(SITE)):
        assert not any(window in expression for window in ("[6h]", "[1d]", "[3d]", "[30d]")) or STEP in expression, name


def test_the_budget_is_evaluated_more_often_than_a_sample_is_forgotten():
    *_, seldom = groups("freshness", SITE)

    assert (seldom["name"], seldom["interval"]) == ("ledgerops-freshness-budget", "2m")


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    (folder / "freshness.yaml").write_text(rule_files(SITE)["freshness.yaml"])
    return folder


def holds(folder, expression, at):
    """Whether an expression is 1 at a second of SERIES, by promtool."""
    case = {
        "interval": "15s",
        "input_series": [{"series": f"{name}{{{LABELS}}}", "values": values} for name, values in SERIES.items()],
        "promql_expr_test": [
            {"expr": f"sum({expression})", "eval_time": f"{at}s", "exp_samples": [{"labels": "{}", "value": 1}]}
        ],
    }
    test = {"rule_files": ["freshness.yaml"], "evaluation_interval": "15s", "tests": [case]}
    file = folder / f"test-{at}.yaml"
    file.write_text(yaml.safe_dump(test))
    done = subprocess.run([needed("promtool"), "test", "rules", str(file)], capture_output=True, text=True)
    assert done.returncode in (0, 1)
    print(done.stdout, done.stderr)
    return done.returncode == 0
