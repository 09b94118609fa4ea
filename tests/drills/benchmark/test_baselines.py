"""The methods that are compared with ours, on cases of a few scrapes."""

import json
import math
import re

import pytest

from ledgerops.diagnosis.rules import RULES
from ledgerops.drills.benchmark.baselines import log_reader, ranking
from ledgerops.drills.benchmark.baselines.data import Answer, cases, series
from ledgerops.drills.benchmark.baselines.mapping import MAPPING, causes_of
from ledgerops.drills.benchmark.baselines.thresholds import by_backlog, by_thresholds
from ledgerops.drills.benchmark.methods import chance, most_frequent
from ledgerops.errors import UserError
from tests import tables
from tests.drills.benchmark.tiny import T0, case, write

BACKLOG = "ledgerops_query_backlog_offsets"
DURATION, INTERVAL = "ledgerops_last_batch_duration_seconds", "ledgerops_trigger_interval_seconds"
LAG, ACTIVE, FAILURES = "ledgerops_query_lag_seconds", "ledgerops_query_active", "ledgerops_query_failures_total"
PART = "ledgerops_batch_part_seconds"


def said(answers: list[Answer]) -> list[list[str]]:
    return [[cause["cause"] for cause in answer["causes"]] for answer in answers]


@tables.cases(
    "backlog, last",
    ("it grows", [5, 10, 20, 40, 80], ["input-overload"]),
    ("it grows in steps", [5, 9, 9, 9, 30], ["input-overload"]),
    ("large but steady", [80, 80, 80, 80, 80], []),
    ("a burst being worked off", [0, 400, 300, 200, 0], []),
    ("it was empty a moment ago", [0, 10, 20, 30], []),
    ("too few scrapes to tell", [10, 20, 30], []),
)
def test_a_lag_tool_names_an_overload_while_the_backlog_grows(tmp_path, backlog, last):
    assert said(by_backlog(case(tmp_path, {BACKLOG: backlog})))[-1] == last


@tables.cases(
    "metrics, last",
    ("three batches outlast the trigger", {DURATION: [3, 3, 3], INTERVAL: [2, 2, 2]}, ["slow-sink"]),
    ("two of three", {DURATION: [1, 3, 3], INTERVAL: [2, 2, 2]}, []),
    ("back to back", {DURATION: [3, 3, 3], INTERVAL: [0, 0, 0]}, []),
    ("the lag grows", {LAG: [20, 25, 30], INTERVAL: [2, 2, 2]}, ["input-overload"]),
    ("the lag is steady", {LAG: [30, 30, 30], INTERVAL: [2, 2, 2]}, []),
    ("a lag within the interval", {LAG: [20, 25, 30], INTERVAL: [60, 60, 60]}, []),
    ("it failed", {ACTIVE: [1, 1, 0], FAILURES: [0, 0, 1]}, ["query-failed"]),
    ("it was stopped", {ACTIVE: [1, 1, 0], DURATION: [3, 3, 3], INTERVAL: [2, 2, 2]}, []),
    ("a batch that does not end", {"ledgerops_batch_running_seconds": [1, 6, 40]}, ["query-stuck"]),
    ("no progress", {"ledgerops_last_progress_timestamp_seconds": [T0 - 50] * 3}, ["query-stuck"]),
)
def test_fixed_thresholds_fire_as_alerts_would(tmp_path, metrics, last):
    assert said(by_thresholds(case(tmp_path, metrics)))[-1] == last


STEADY, JUMPED = [1.0, 1.1, 1.0, 1.1, 1.0, 1.1, 1.0, 1.1], [0.2, 0.2, 0.2, 0.2, 9.0, 9.0, 9.0, 9.0]


@pytest.mark.parametrize("score", [ranking.z_score, ranking.change_point])
def test_a_ranking_names_the_cause_of_the_metric_that_moved(tmp_path, score):
    found = ranking.answer(case(tmp_path, {f"{PART}/python": JUMPED, f"{PART}/sink_wait": STEADY}, fault=5), score)
    assert said(found)[0][0] == "python-bound"
    assert found[0]["at"] == T0 + 35


@pytest.mark.parametrize("score", [ranking.z_score, ranking.change_point])
@tables.cases(
    "duration, speaks",
    ("noise", [1.0, 1.3, 0.9, 1.2, 1.1, 1.4, 0.8, 1.2], False),
    ("a step", [1.0, 1.0, 1.0, 7.0, 7.0, 7.1, 7.0, 7.0], True),
)
def test_a_ranking_speaks_of_a_healthy_case_only_if_the_query_does_worse(tmp_path, score, duration, speaks):
    found = ranking.answer(case(tmp_path, {f"{PART}/python": JUMPED, DURATION: duration}), score)
    assert bool(found[0]["causes"]) is speaks


def test_a_fault_from_the_start_is_split_at_the_first_third(tmp_path):
    assert case(tmp_path / "birth", {DURATION: [1] * 10}, fault=0).split == T0 + 15
    assert case(tmp_path / "later", {DURATION: [1] * 10}, fault=6).split == T0 + 30


def test_series_are_rates_of_totals_and_keep_the_labels_that_differ(tmp_path):
    rows = list(case(tmp_path, {"rows_total": [0, 10, 30], f"{PART}/gc": [None, 2.0, 3.0]}).rows())
    times, [part, rate] = series(rows, T0, T0 + 10)

    assert times == [T0, T0 + 5, T0 + 10]
    assert (
        part.name == f'{PART}{{part="gc",query="orders"}}'
        and math.isnan(part.values[0])
        and list(part.values[1:]) == [2.0, 3.0]
    )
    assert rate.name == 'rows_total{query="orders"}' and list(rate.values[1:]) == [2.0, 4.0]


def test_two_queries_are_two_series():
    labels = [json.dumps({"job": "ledgerops", "query": query}) for query in ("orders", "returns")]
    found = series([(T0, BACKLOG, label, 1.0) for label in labels], T0, T0)[1]
    assert [each.name for each in found] == [f'{BACKLOG}{{query="{query}"}}' for query in ("orders", "returns")]


@pytest.mark.parametrize(
    "metric", ["up", "ledgerops_last_seen_timestamp_seconds", "ledgerops_scrape_seconds", "x_bucket", "x_info"]
)
def test_what_says_nothing_of_the_query_is_left_out(tmp_path, metric):
    assert series(case(tmp_path, {metric: [1, 2]}).rows(), T0, T0 + 5)[1] == []


@pytest.mark.parametrize(
    ("metric", "moved", "causes"),
    [
        (f'{PART}{{part="gc"}}', 1.0, ("gc-pressure",)),
        (f'{PART}{{part="gc"}}', -1.0, ()),
        ("ledgerops_source_reachable", -1.0, ("source-unreachable",)),
        ("ledgerops_process_threads", 5.0, ()),
    ],
)
def test_a_metric_names_a_cause_by_the_way_it_moved(metric, moved, causes):
    assert causes_of([(metric, moved)]) == causes


def test_the_mapping_names_known_causes_and_each_cause_once():
    assert {cause for entry in MAPPING for cause in entry.causes} <= {rule.slug for rule in RULES}
    assert all(re.compile(entry.pattern) for entry in MAPPING)
    assert causes_of([("ledgerops_query_lag_seconds", 1.0), (BACKLOG, 1.0)]) == ("input-overload", "rate-limited")


@pytest.mark.parametrize(
    ("rules", "stages", "causes"),
    [
        (["gc-pressure", "gc-pressure", "data-skew"], 10, ("gc-pressure",)),
        (["data-skew"], 100, ()),
        (["data-skew"], 4, ("key-skew", "straggler", "source-partition-skew")),
        (["partition-count"], 1, ("too-many-tasks",)),
        ([log_reader.FEW_PARTITIONS], 1, ("input-overload",)),
        (["a-new-rule"], 1, ()),
        ([], 0, ()),
    ],
)
def test_a_rule_of_the_log_reader_counts_where_a_fifth_of_the_stages_meet_it(rules, stages, causes):
    assert log_reader.causes_of(rules, stages) == causes


def test_chance_draws_the_same_causes_each_time_and_others_for_another_case(tmp_path):
    one = case(tmp_path, {DURATION: [1]})
    causes = [f"cause-{number}" for number in range(20)]

    assert chance(one, causes) == chance(one, list(reversed(causes)))
    assert len(chance(one, causes)["causes"]) == 3


def test_the_most_frequent_cause_is_the_one_that_most_faults_accept():
    assert most_frequent([{"accepted": ["a", "b"]}, {"accepted": ["b"]}, {"accepted": []}]) == "b"


def test_a_folder_without_cases_and_a_case_without_metrics_are_refused(tmp_path):
    with pytest.raises(UserError, match="no cases of the split test in"):
        cases(tmp_path)
    write(tmp_path, "1-01", {DURATION: [1]}, None)
    (tmp_path / "cases" / "1-01" / "metrics.parquet").unlink()
    with pytest.raises(UserError, match="cannot read the metrics"):
        list(cases(tmp_path)[0].rows())
