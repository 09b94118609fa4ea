"""A symptom that stands for itself: the largest part of a batch, and a remedy that is true of it."""

from __future__ import annotations

from ledgerops.diagnosis.engine import Diagnoser
from tests.diagnosis.contradictions import contradictions


def test_a_symptom_without_a_cause_says_where_the_time_goes(history):
    phases = [{"add_batch": 2.6, "query_planning": 0.4}] * 40
    verdict = Diagnoser()(history(warm=0, seconds=[3.1] * 40, phases=phases, cores=None))
    [root] = verdict.root_causes

    assert root.rule == "trigger-overrun"
    assert root.summary.endswith("the largest part of a batch is stages whose tasks were not read: 2.6 s of 3.1 s")
    assert [each.action for each in root.remedies] == [
        "see in the Spark UI which stage of a batch takes longest",
        "set the trigger interval to 5 s or more, if results may be that old",
    ]
    assert contradictions(verdict) == []


def test_a_symptom_never_points_to_a_cause_that_nobody_names(history):
    lefts = [2000 * n for n in range(12)]
    verdict = Diagnoser()(history(warm=0, seconds=[1.9] * 12, rows=900, backlog=lefts, cores=None))

    assert contradictions(verdict) == []


def test_a_query_that_outlasts_its_interval_a_little_is_pressured_and_told_why(history):
    verdict = Diagnoser()(history(warm=0, seconds=[2.68] * 30, cores=None))

    assert (verdict.status, [root.rule for root in verdict.root_causes]) == ("pressured", ["trigger-overrun"])
    assert verdict.health < 100
