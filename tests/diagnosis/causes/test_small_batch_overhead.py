from dataclasses import replace

import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.small_batch_overhead import CAUSE
from ledgerops.diagnosis.facts.longer_interval import longer_interval
from ledgerops.diagnosis.profile import profile
from ledgerops.model.records import DriverCode
from tests.diagnosis.conftest import stage
from tests.tables import cases

PLANS = {"query_planning": 1.5, "add_batch": 0.4, "wal_commit": 0.1}
LITTLE = [stage("save", records=[10, 10], seconds=[0.1, 0.1], wall=0.2, began=1.6)]

SLOW_ROWS = stage(records=[9, 9], seconds=[1.7, 1.7], began=0.1)


def small(history, **more):
    told = {"rows": 20, "interval": 0.5, "seconds": [2.1] * 20, "phases": PLANS, "stages": LITTLE}
    return history(**{"warm": 0} | told | more)


def test_planning_and_starting_tasks_are_told_with_an_interval_that_would_do(history):
    [finding] = check(CAUSE, small(history))
    assert finding.summary == "1.7 s of a batch of 2.1 s are its fixed cost: planning, and starting its tasks"
    assert finding.component.detail == "query_planning"
    assert finding.remedies[0].action == "set the trigger interval to 4 s or more, if results may be that old"


@cases(
    "seconds, step",
    ("a plan that takes long", 2.0, "set the trigger interval"),
    ("no plan takes so long", 6.0, "take a thread dump of the driver"),
)
def test_of_planning_that_takes_seconds_the_first_step_is_to_see_why(history, seconds, step):
    plans = {"query_planning": seconds, "add_batch": 0.4}
    [finding] = check(CAUSE, small(history, seconds=[seconds + 0.5] * 20, phases=plans))
    assert finding.remedies[0].action.startswith(step)
    assert finding.remedies[-2].action.startswith("set the trigger interval")


@cases(
    "ran, largest",
    ("launch", stage(records=[9, 9], seconds=[0.2, 0.2], wall=1.7, began=0.1), "launch"),
    ("hardly any rows", SLOW_ROWS, "few_rows"),
    ("the driver", stage(records=[900, 900], seconds=[0.2, 0.2], began=1.8), "driver_before"),
)
def test_what_costs_most_of_it_is_named(history, ran, largest):
    [finding] = check(CAUSE, small(history, phases={"add_batch": 1.9}, stages=[ran]))
    assert finding.component.detail == largest


def working(seconds, began=0.1):
    """Batches of tasks that work for so long, and nothing else."""
    return {"phases": {"add_batch": 2.0}, "stages": [stage(records=[900, 900], seconds=[seconds] * 2, began=began)]}


def fixed(planning):
    """Of a batch of 2.1 s so many seconds of planning; tasks that work take most of the rest."""
    return working(1.9 - planning) | {"phases": {"query_planning": planning, "add_batch": 2.0 - planning}}


def test_what_takes_a_third_of_a_batch_is_told(history):
    [finding] = check(CAUSE, small(history, **fixed(planning=0.75)))
    assert finding.share == pytest.approx(0.75 / 2.1)


@cases(
    "case",
    ("less than a third of the batch", fixed(planning=0.5)),
    ("a third passes before the first task, maybe in a function", working(1.1, began=0.9)),
    ("a first batch, which pays for warm-up", {"seconds": [42.0]}),
    ("nobody waits for half a second", {"seconds": [0.6] * 20}),
    ("the tasks have work", working(1.8)),
    (
        "the tasks have large documents",
        {"phases": {"add_batch": 1.9}, "stages": [replace(SLOW_ROWS, input_bytes=2**22)]},
    ),
    ("the sink waits", {"phases": {"add_batch": 2.0}, "stages": [stage(seconds=[0.2, 0.2])]}),
    ("the checkpoint is slow", {"phases": {"add_batch": 0.4, "wal_commit": 0.8, "commit_offsets": 0.8}}),
)
def test_others_are_not(history, case):
    assert list(check(CAUSE, small(history, **case))) == []


@cases("interval, helps", ("no room", 2.5, True), ("room for a batch", 5.0, False))
def test_a_longer_interval_is_advised_where_it_is_longer_than_that_of_the_query(history, interval, helps):
    view = small(history, interval=interval)
    assert (CAUSE.tell(view, profile(view)) is not None) is helps
    assert bool(longer_interval(view, 2.1)) is helps


@cases(
    "limits, more",
    ("each batch reads what it allows", {"maxOffsetsPerTrigger": "20"}, " and maxOffsetsPerTrigger to 39"),
    ("it allows far more", {"maxOffsetsPerTrigger": "5000"}, ""),
    ("a time is no amount", {"kinesis.executor.maxFetchTimeInMs": "1000"}, ""),
    ("files: what a batch leaves is not known", {"maxFilesPerTrigger": "2"}, " and maxFilesPerTrigger to 4"),
)
def test_a_longer_interval_goes_with_a_limit_that_lets_in_as_much_a_second(history, limits, more):
    [finding] = check(CAUSE, small(history, plan={"rate_limits": limits}))
    expected = f"set the trigger interval to 4 s or more{more}, if results may be that old"
    assert finding.remedies[0].action == expected
    assert [name for name, _ in finding.remedies[0].settings][1:] == [*limits] * bool(more)


IN_DRIVER = {"phases": {"add_batch": 1.9}, "stages": [stage(records=[900, 900], seconds=[0.2, 0.2], began=1.7)]}
LINE = "look at app.py:22 in write: the function of foreachBatch spends most of its time there"
LONGER, NO_CORES = "set the trigger interval to 4 s or more, if results may be that old", "do not add cores to fix this"


@cases(
    "case, at, actions",
    ("before the first task", IN_DRIVER, 0.0, [LINE, LONGER, NO_CORES]),
    ("in planning the query", {}, 0.0, [LONGER, NO_CORES]),
    ("no line was seen since", IN_DRIVER, -600.0, [LONGER, NO_CORES]),
)
def test_the_line_of_the_function_is_told_where_the_driver_is_in_it(history, case, at, actions):
    view = small(history, plan={"sink": "ForeachBatchSink"}, **case)
    view.history.driver_code = DriverCode(view.now + at, "run-1", 10, 9, "app.py", 22, "write")
    [finding] = check(CAUSE, view)
    assert [each.action for each in finding.remedies] == actions
