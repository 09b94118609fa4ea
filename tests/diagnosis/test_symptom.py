"""A symptom that stands for itself: the largest part of a batch, and a remedy that is true of it."""

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.symptom import with_largest_part
from ledgerops.model.finding import Component, Finding
from ledgerops.model.records import DriverCode
from tests.diagnosis.conftest import stage
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


def test_a_symptom_that_lingers_still_speaks_of_the_batches_that_showed_it(history):
    diagnose, long = Diagnoser(), [1.0] * 5 + [54.0, 11.0]
    [shown] = diagnose(history(warm=0, seconds=long, interval=4.0, cores=None)).root_causes
    [lingers] = diagnose(history(warm=0, seconds=[*long, 0.7], interval=4.0, cores=None)).root_causes

    assert shown.summary == lingers.summary
    assert shown.summary == (
        "2 of the last 2 batches outlast the interval of 4 s; their median is 32 s; the largest part of a batch is "
        "stages whose tasks were not read: 26 s of 32 s"
    )


def test_of_two_long_batches_none_is_said_to_be_the_only_one(history):
    view = history(seconds=[1.0] * 6 + [54.0, 11.0], interval=None, cores=None)
    told = with_largest_part(Finding("late", Component("query", "q"), (), (), 0.5, rule="freshness-breach"), view)
    assert told.summary == "late; a batch took 54 s, a typical one takes 1.0 s"
    assert [each.why for each in told.remedies] == ["a typical batch is far shorter"]


def test_the_time_of_the_driver_is_told_with_the_line_of_the_function_that_takes_it(history):
    stages = [stage(wall=0.3, began=0.2), stage(wall=0.3, began=3.5)]
    view = history(
        warm=0, seconds=[4.0] * 8, phases={"add_batch": 3.9}, stages=stages, plan={"sink": "ForeachBatchSink"}
    )
    late = Finding("late", Component("query", "q"), (), (), 0.5, rule="trigger-overrun")
    assert with_largest_part(late, view).summary.endswith(": 3.0 s of 4.0 s")

    view.history.driver_code = DriverCode(view.now, "run-1", 21, 21, "/srv/crm.py", 28, "post")
    told = with_largest_part(late, view)
    assert told.summary.endswith("s of 4.0 s, and the function of foreachBatch is mostly at crm.py:28 in post")
    assert [each.action for each in told.remedies] == [
        "look at crm.py:28 in post: the function of foreachBatch spends most of its time there"
    ]


def test_the_line_is_also_told_where_no_stage_was_read(history):
    """A run that a scheduler starts is over before its stages are read."""
    view = history(warm=0, seconds=[4.0] * 8, phases={"add_batch": 3.9}, plan={"sink": "ForeachBatchSink"}, cores=None)
    view.history.driver_code = DriverCode(view.now, "run-1", 21, 21, "/srv/crm.py", 28, "post")
    told = with_largest_part(Finding("late", Component("query", "q"), (), (), 0.5, rule="trigger-overrun"), view)
    assert told.summary.endswith(
        "read: 3.9 s of 4.0 s, and the function of foreachBatch is mostly at crm.py:28 in post"
    )
    assert told.remedies[0].action.startswith("look at crm.py:28")


def test_without_a_typical_batch_the_running_one_says_where_it_is(history):
    view = history(warm=0, seconds=[19.0], interval=5.0, running=129.0)
    view.history.driver_code = DriverCode(view.now, "run-1", 21, 21, "/srv/crm.py", 28, "post")
    [root] = Diagnoser()(view).root_causes

    place = "the function of foreachBatch is at crm.py:28 in post"
    assert root.summary == f"a batch outlasts the interval of 5 s; it has taken 2 min 9 s; {place}"
    assert root.remedies[0].action.startswith("see in the Spark UI whether a task of the batch runs")
