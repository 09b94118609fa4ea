from dataclasses import replace

import pytest

from ledgerops.diagnosis.rules.intermittent_sink import RULE
from ledgerops.model.records import DriverCode
from tests.diagnosis.conftest import stage
from tests.tables import cases

QUICK = [stage("save", seconds=[0.4, 0.4], wall=0.5)]
STALLS = [1, 1, 1, 6] * 4  # a trigger interval of 2 s
STATEFUL = [{"name": "stateStoreSave", "rows": 100}]


def phases(seconds):
    return [{"add_batch": each - 0.2, "query_planning": 0.1} for each in seconds]


def test_stalls_now_and_then_are_told_with_their_number_excess_and_spacing(history):
    [finding] = RULE.check(history(seconds=STALLS, phases=phases(STALLS), stages=QUICK, warm_rows=1000, warm=10))

    assert finding.summary == (
        "4 of the last 21 batches waited about 5.0 s for the sink, every 12 s; a usual batch takes 1.0 s"
    )
    assert finding.component.kind == "sink" and finding.component.detail == "periodic"


def test_the_line_of_the_function_that_waits_is_told(history):
    view = history(seconds=STALLS, phases=phases(STALLS), plan={"sink": "ForeachBatchSink"})
    view.history.driver_code = DriverCode(view.now, "run-1", 10, 9, "/srv/app.py", 42, "settle")
    [finding] = RULE.check(view)

    assert "for the sink (mostly at app.py:42 in settle), every" in finding.summary


def test_stalls_from_the_first_seconds_on_count_where_too_few_came_later(history):
    """Every fourth batch, from the start: the first of the three begins while the query still warms up."""
    seconds = [1.0, 1.0, 1.0, 6.0] * 3 + [1.0]
    assert list(RULE.check(history(seconds=seconds, phases=phases(seconds), warm=0)))
    assert list(RULE.check(history(seconds=seconds[:9], phases=phases(seconds[:9]), warm=0))) == []


def test_with_a_long_trigger_interval_the_batches_count_and_not_the_minutes(history):
    """Each tenth batch compacts the log of a file sink."""
    seconds = ([8.0] * 9 + [60.0]) * 3 + [8.0]
    [finding] = RULE.check(history(interval=20.0, warm=10, seconds=seconds, phases=phases(seconds)))
    assert finding.summary.startswith("3 of the last") and "every 4 min" in finding.summary


GROSS = [0.2] * 10 + [15.0] + [0.2] * 4 + [15.0, 0.2]


def test_two_are_enough_where_they_are_so_long_that_a_third_would_come_after_a_minute(history):
    [finding] = RULE.check(history(seconds=GROSS, phases=phases(GROSS), stages=QUICK))
    assert finding.summary.endswith(" waited about 15 s for the sink, 22 s apart; a usual batch takes 0.20 s")
    assert finding.component.detail == "irregular"


@cases(
    "seconds, stages",
    ("tasks computed", GROSS, [[stage("save", seconds=[14.0, 14.0], wall=14.5)]]),
    ("14 s in all: a third comes soon", [each * 0.48 for each in GROSS], [QUICK]),
    ("less than ten times the usual", [each if each > 1 else 1.6 for each in GROSS], [QUICK]),
    ("one", GROSS[:-2], [QUICK]),
)
def test_two_are_a_coincidence_otherwise(history, seconds, stages):
    assert list(RULE.check(history(seconds=seconds, phases=phases(seconds), stages=stages[0]))) == []


def test_a_long_wait_for_the_broker_is_no_second_one_for_the_sink(history):
    waits = phases(GROSS)
    waits[-2] = {"add_batch": 0.1, "latest_offset": 14.8}
    assert list(RULE.check(history(seconds=GROSS, phases=waits, stages=QUICK))) == []


def test_without_tasks_the_growth_of_add_batch_tells_it(history):
    """Where the source stalls, add_batch takes as long as ever."""
    [finding] = RULE.check(history(seconds=STALLS, phases=phases(STALLS)))
    assert {each.name: each.value for each in finding.evidence}["waiting_share_of_excess"] == pytest.approx(1.0)


def test_irregular_stalls_are_said_to_be_irregular(history):
    seconds = [5, *[1] * 9, 5, 1, 5, 1, 1, 1, 5, 1]
    [finding] = RULE.check(history(seconds=seconds, phases=phases(seconds), warm=10))
    assert finding.summary.endswith("at irregular intervals with a median of 10 s; a usual batch takes 1.0 s")


def test_writing_tasks_that_wait_are_the_sink_too(history):
    stalled = [stage("save", seconds=[5.2, 5.2], wall=5.3, cpu=0.05)]
    stages = [stalled if each > 1 else QUICK for each in STALLS]
    assert list(RULE.check(history(seconds=STALLS, phases=phases(STALLS), stages=stages)))


def test_one_writing_task_that_waits_is_a_straggler(history):
    """As many rows in each: on one of the machines something is amiss, and the sink takes what the others bring."""
    records, seconds = [300] * 5, [0.1, 0.1, 0.1, 0.1, 5.2]
    stalled = [stage("save", records=records, seconds=seconds, wall=5.3, cpu=0.05)]
    stages = [stalled if each > 1 else QUICK for each in STALLS]

    assert list(RULE.check(history(seconds=STALLS, phases=phases(STALLS), stages=stages))) == []


def test_writing_tasks_that_wait_for_their_state_to_be_saved_are_not(history):
    stalled = [stage("save", seconds=[5.2, 5.2], wall=5.3, cpu=0.05)]
    stages = [stalled if each > 1 else QUICK for each in STALLS]
    saving = [STATEFUL[0] | {"commit_seconds": 9.0 if each > 1 else 0.1} for each in STALLS]
    case = {"seconds": STALLS, "phases": phases(STALLS), "stages": stages}

    assert list(RULE.check(history(**case, operators=STATEFUL[0])))
    assert list(RULE.check(history(**case, operators=saving))) == []


@cases(
    "case",
    ("a sink that keeps nothing", {"seconds": STALLS, "plan": {"sink": "NoopTable"}}),
    ("one hiccup", {"seconds": [1, 1, 6, 1, 1, 1, 1, 1]}),
    ("one pause of the machine over three batches", {"seconds": [1, 1, 6, 6, 6, 1, 1, 1]}),
    ("twice is a coincidence", {"seconds": [1, 6, 1, 1, 1, 6, 1, 1]}),
    ("slow each time", {"seconds": [6] * 16}),
    (
        "slow from some time on, with more rows now and then",
        {"seconds": [1] * 20 + [5] * 7, "rows": [1000] * 20 + [1000, 3000] * 3 + [1000]},
    ),
    ("slow every other time", {"seconds": [1, 6] * 8}),
    ("within the interval", {"seconds": [1, 1, 1, 1.9] * 4}),
    ("bursts of rows", {"seconds": STALLS, "rows": [100, 100, 100, 900] * 4, "warm_rows": 100}),
    ("over", {"seconds": [*STALLS, *[1] * 30]}),
    (
        "the source stalls",
        {"seconds": STALLS, "phases": [{"add_batch": 0.8, "latest_offset": each - 0.9} for each in STALLS]},
    ),
    (
        "the tasks compute all the time",
        {
            "seconds": STALLS,
            "stages": [[stage("save", seconds=[5.5, 5.6], wall=5.6)] if each > 1 else QUICK for each in STALLS],
        },
    ),
    ("garbage collection", {"seconds": STALLS, "cores": 2, "gc": 15.0}),
    (
        "each tenth batch of a stateful query is a snapshot",
        {"seconds": ([6] + [1] * 9) * 4, "operators": STATEFUL * 40},
    ),
    ("the usual one overruns, too", {"seconds": [1.5, 1.5, 6] * 4, "warm_seconds": 2.5, "warm": 14}),
    ("nobody waits for less than a second", {"seconds": [0.2, 0.2, 0.2, 0.9] * 4, "interval": 0.5}),
)
def test_others_are_not(history, case):
    case = {"phases": phases(case["seconds"]), **case} if "seconds" in case else case
    assert list(RULE.check(history(**case))) == []


@cases(
    "slow, found",
    ("its state took no time", {"update_seconds": 0.2, "commit_seconds": 0.1}, True),
    ("its rows look up their state", {"update_seconds": 4.0}, False),
    ("rows leave the state", {"removal_seconds": 4.0}, False),
    ("windows end, and more rows are written", {"removed": 500}, False),
)
def test_of_a_stateful_query_whose_slow_batches_were_not_sampled_the_state_rules_itself_out(history, slow, found):
    operators = [STATEFUL[0] | {"removed": 10} | (slow if each > 1 else {}) for each in STALLS]
    view = history(seconds=STALLS, phases=phases(STALLS), operators=operators)
    assert bool(list(RULE.check(view))) is found


def test_a_look_that_asked_spark_in_vain_does_not_hide_garbage_collection(history):
    """Spark's UI answers late while all stand still: such a look tells of no executor."""
    seen = history(seconds=STALLS, phases=phases(STALLS), stages=QUICK, cores=2, gc=15.0)
    seen.hosts = [replace(seen.hosts[0], at=seen.now - 30, executors=()), *seen.hosts]
    assert list(RULE.check(seen)) == []

    seen.hosts = [*seen.hosts, replace(seen.hosts[-1], at=seen.now, executors=())]
    assert list(RULE.check(seen)) == []
