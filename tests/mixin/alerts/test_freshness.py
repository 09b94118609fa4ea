"""The long windows of freshness, which are made of one sample every five minutes."""

import pytest

from ledgerops.mixin.alerts.freshness import BAD, STEP, budget, records
from ledgerops.mixin.promtests import evaluated
from ledgerops.mixin.rule_files import groups, rule_files
from ledgerops.mixin.site import Site
from tests.promtool import refused

SITE = Site()
LABELS = 'job="ledgerops", app="bank", instance="a:1", query="q"'
SERIES = {  # 20 minutes bad from 1:00, and 100 s from 2:33:20 on
    "ledgerops_last_seen_timestamp_seconds": "0+15x2000",
    "ledgerops_query_active": "1x2000",
    "ledgerops_query_expected": "1x2000",
    "ledgerops_query_lag_seconds": "0x239 120x79 0x293 120x6 0x400",
}


WINDOWS = [
    ("query:freshness_bad:ratio_6h", f"sum_over_time({BAD}[6h]) / 1440"),
    ("query:freshness_bad:ratio_1d", f"sum_over_time({BAD}[1d]) / 5760"),
    ("query:freshness_bad:ratio_3d", f"sum_over_time({BAD}[3d]) / 17280"),
    ("query:freshness_budget:ratio", f"1 - sum_over_time({BAD}[30d]) / 172800 / 0.01"),
]
ENDS = {"good": 3000, "in the middle": 4500, "after the second": 9600, "later": 12000}  # seconds
BETWEEN = [15, 120, 285]  # seconds after a step
BEHIND = f"(sum_over_time({BAD}[6h]) - 1440 * query:freshness_bad:ratio_6h) * 15"
SAMPLES = f"count_over_time({STEP}[59m59s])"


def same(recorded, exact):
    return f"abs({recorded} - ({exact})) < bool 1e-9"


ASKED = [
    *((same(*window), at) for window in WINDOWS for at in ENDS.values()),
    *((f"{BEHIND} {bound}", 3600 + after) for bound in (">= bool 0", "<= bool 300") for after in BETWEEN),
    (f"{SAMPLES} == bool 12", 7200),
]


@pytest.mark.parametrize("at", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(("recorded", "exact"), WINDOWS)
def test_at_the_end_of_a_step_a_long_window_has_the_share_of_all_its_seconds(holds, recorded, exact, at):
    assert holds[same(recorded, exact), at]


@pytest.mark.parametrize("after", BETWEEN)
def test_between_two_steps_a_long_window_is_at_most_five_minutes_behind(holds, after):
    assert holds[f"{BEHIND} >= bool 0", 3600 + after]
    assert holds[f"{BEHIND} <= bool 300", 3600 + after]


def test_a_step_has_one_sample(holds):
    assert holds[f"{SAMPLES} == bool 12", 7200]


def test_no_rule_reads_more_than_a_day_of_single_evaluations():
    for name, expression in (*records(SITE), *budget(SITE)):
        assert not any(window in expression for window in ("[6h]", "[1d]", "[3d]", "[30d]")) or STEP in expression, name


def test_the_budget_is_evaluated_more_often_than_a_sample_is_forgotten():
    *_, seldom = groups("freshness", SITE)

    assert (seldom["name"], seldom["interval"]) == ("ledgerops-freshness-budget", "2m")


@pytest.fixture(scope="module")
def holds(tmp_path_factory):
    """Whether each of ASKED, an expression and a second of SERIES, is 1 there: by promtool, which is started once."""
    folder = tmp_path_factory.mktemp("rules")
    names = ["symptoms.yaml", "freshness.yaml"]
    for name in names:
        (folder / name).write_text(rule_files(SITE)[name])
    asked = {f"sum({expression}) # {at}": (expression, at) for expression, at in ASKED}
    one = [{"labels": "{}", "value": 1}]
    series = [{"series": f"{name}{{{LABELS}}}", "values": values} for name, values in SERIES.items()]
    tests = [{"expr": text, "eval_time": f"{at}s", "exp_samples": one} for text, (_, at) in asked.items()]
    case = {"interval": "15s", "input_series": series, "promql_expr_test": tests}
    rules = {"rule_files": names, "group_eval_order": evaluated("freshness", SITE)}
    wrong = refused(folder, {**rules, "evaluation_interval": "15s", "tests": [case]})
    return {question: text not in wrong for text, question in asked.items()}
