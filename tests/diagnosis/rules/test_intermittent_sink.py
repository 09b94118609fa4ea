from dataclasses import replace

import pytest

from ledgerops.diagnosis.rules.intermittent_sink import RULE
from ledgerops.model.records import DriverCode
from tests.diagnosis.conftest import stage, told_by
from tests.tables import cases

QUICK = [stage("save", seconds=[0.4, 0.4], wall=0.5)]
STALLS = [1, 1, 1, 6] * 4  # a trigger interval of 2 s
STATEFUL = {"name": "stateStoreSave", "rows": 100}
GROSS = [0.2] * 10 + [15.0] + [0.2] * 4 + [15.0, 0.2]
UNEVEN_ROWS, SNAPSHOTS = [1000] * 20 + [1000, 3000] * 3 + [1000], ([6] + [1] * 9) * 4


def phases(seconds):
    return [{"add_batch": each - 0.2, "query_planning": 0.1} for each in seconds]


def stalling(history, seconds=STALLS, **more):
    return history(**{"seconds": seconds, "phases": phases(seconds)} | more)


IRREGULAR = {"seconds": [5, *[1] * 9, 5, 1, 5, 1, 1, 1, 5, 1], "warm": 10}
COMPACTS = {"seconds": ([8.0] * 9 + [60.0]) * 3 + [8.0], "interval": 20.0, "warm": 10, "stages": None}  # a log


@cases(
    "case, count, excess, spacing, usual",
    ("periodic", {"warm": 10}, "4 of the last 21", "5.0 s", "every 12 s", "1.0 s"),
    ("irregular", IRREGULAR, "4 of the last 23", "4.0 s", "at irregular intervals with a median of 10 s", "1.0 s"),
    ("batches count, not minutes", COMPACTS, "3 of the last 24", "52 s", "every 4 min", "8.0 s"),
    ("two that are very long", {"seconds": GROSS}, "2 of the last 22", "15 s", "22 s apart", "0.20 s"),
)
def test_stalls_are_told_with_their_number_excess_and_spacing(history, case, count, excess, spacing, usual):
    [finding] = RULE.check(stalling(history, **{"stages": QUICK} | case))
    waited = f"{count} batches waited about {excess} for the sink, {spacing}"
    assert finding.summary == f"{waited}; a usual batch takes {usual}"
    assert finding.component.kind == "sink"
    two = spacing.endswith("apart")
    assert finding.component.detail == (None if two else "periodic" if spacing.startswith("every") else "irregular")


def test_the_line_of_the_function_that_waits_is_told(history):
    view = stalling(history, plan={"sink": "ForeachBatchSink"})
    view.history.driver_code = DriverCode(view.now, "run-1", 10, 9, "/srv/app.py", 42, "settle")
    [finding] = RULE.check(view)
    assert "for the sink (mostly at app.py:42 in settle), every" in finding.summary


EACH_TENTH = [15.0 if n % 10 == 9 else 0.2 for n in range(24)]
FILES, TABLE = {"sink": "FileSink[file:/out]"}, {"sink": "DeltaSink[file:/out]"}


@cases(
    "case, found",
    ("the log of a folder", {"plan": FILES}, "log"),
    ("a table has another log", {"plan": TABLE}, None),
    ("other batches of a folder", {"plan": FILES, "seconds": EACH_TENTH[1:]}, None),
)
def test_the_batches_in_which_a_file_sink_writes_its_whole_log_are_told(history, case, found):
    [finding] = RULE.check(stalling(history, **{"seconds": EACH_TENTH, "warm": 0, "stages": QUICK} | case))
    assert finding.component.detail == found
    assert ("_spark_metadata" in finding.summary) is ("_spark_metadata" in finding.remedies[0].action) is bool(found)


def test_stalls_from_the_first_seconds_on_count_where_too_few_came_later(history):
    """Every fourth batch, from the start: the first of the three begins while the query still warms up."""
    seconds = [1.0, 1.0, 1.0, 6.0] * 3 + [1.0]
    assert list(RULE.check(stalling(history, seconds, warm=0)))
    assert list(RULE.check(stalling(history, seconds[:9], warm=0))) == []


BROKER = [{"add_batch": 0.1, "latest_offset": 14.8} if n == 15 else each for n, each in enumerate(phases(GROSS))]


@cases(
    "seconds, more",
    ("tasks computed", GROSS, {"stages": [stage("save", seconds=[14.0, 14.0], wall=14.5)]}),
    ("14 s in all: a third comes soon", [each * 0.48 for each in GROSS], {}),
    ("less than ten times the usual", [each if each > 1 else 1.6 for each in GROSS], {}),
    ("one", GROSS[:-2], {}),
    ("a long wait for the broker is no second one for the sink", GROSS, {"phases": BROKER}),
)
def test_two_are_a_coincidence_otherwise(history, seconds, more):
    assert list(RULE.check(stalling(history, seconds, **{"stages": QUICK} | more))) == []


def test_without_tasks_the_growth_of_add_batch_tells_it(history):
    """Where the source stalls, add_batch takes as long as ever."""
    [finding] = RULE.check(stalling(history))
    assert told_by(finding)["waiting_share_of_excess"] == pytest.approx(1.0)


def with_slow_tasks(ran):
    return [ran if each > 1 else QUICK for each in STALLS]


WAIT = [stage("save", seconds=[5.2, 5.2], wall=5.3, cpu=0.05)]
ONE_WAITS = [stage("save", records=[300] * 5, seconds=[0.1, 0.1, 0.1, 0.1, 5.2], wall=5.3, cpu=0.05)]
SAVING = [STATEFUL | {"commit_seconds": 9.0 if each > 1 else 0.1} for each in STALLS]


@cases(
    "ran, operators, found",
    ("all wait", WAIT, None, True),
    ("one waits: something is amiss on a machine, and the sink takes what the others bring", ONE_WAITS, None, False),
    ("all wait, and the state is saved quickly", WAIT, STATEFUL, True),
    ("they wait for their state to be saved", WAIT, SAVING, False),
)
def test_writing_tasks_that_wait_are_the_sink_too(history, ran, operators, found):
    assert bool(list(RULE.check(stalling(history, stages=with_slow_tasks(ran), operators=operators)))) is found


@cases(
    "seconds, more",
    ("a sink that keeps nothing", STALLS, {"plan": {"sink": "NoopTable"}}),
    ("one pause of the machine over three batches", [1, 1, 6, 6, 6, 1, 1, 1], {}),
    ("twice is a coincidence", [1, 6, 1, 1, 1, 6, 1, 1], {}),
    ("slow each time", [6] * 16, {}),
    ("slow from some time on, with more rows now and then", [1] * 20 + [5] * 7, {"rows": UNEVEN_ROWS}),
    ("slow every other time", [1, 6] * 8, {}),
    ("within the interval", [1, 1, 1, 1.9] * 4, {}),
    ("bursts of rows", STALLS, {"rows": [100, 100, 100, 900] * 4, "warm_rows": 100}),
    ("over", [*STALLS, *[1] * 30], {}),
    ("the source stalls", STALLS, {"phases": [{"add_batch": 0.8, "latest_offset": each - 0.9} for each in STALLS]}),
    ("tasks compute", STALLS, {"stages": with_slow_tasks([stage("save", seconds=[5.5, 5.6], wall=5.6)])}),
    ("garbage collection", STALLS, {"cores": 2, "gc": 15.0}),
    ("each tenth batch of a stateful query is a snapshot", SNAPSHOTS, {"operators": STATEFUL}),
    ("the usual one overruns, too", [1.5, 1.5, 6] * 4, {"warm_seconds": 2.5, "warm": 14}),
    ("nobody waits for less than a second", [0.2, 0.2, 0.2, 0.9] * 4, {"interval": 0.5}),
)
def test_others_are_not(history, seconds, more):
    assert list(RULE.check(stalling(history, seconds, **more))) == []


@cases(
    "slow, found",
    ("its state took no time", {"update_seconds": 0.2, "commit_seconds": 0.1}, True),
    ("its rows look up their state", {"update_seconds": 4.0}, False),
    ("rows leave the state", {"removal_seconds": 4.0}, False),
    ("windows end, and more rows are written", {"removed": 500}, False),
)
def test_of_a_stateful_query_whose_slow_batches_were_not_sampled_the_state_rules_itself_out(history, slow, found):
    operators = [STATEFUL | {"removed": 10} | (slow if each > 1 else {}) for each in STALLS]
    assert bool(list(RULE.check(stalling(history, operators=operators)))) is found


def test_a_look_that_asked_spark_in_vain_does_not_hide_garbage_collection(history):
    """Spark's UI answers late while all stand still: such a look tells of no executor."""
    seen = stalling(history, stages=QUICK, cores=2, gc=15.0)
    seen.hosts = [replace(seen.hosts[0], at=seen.now - 30, executors=()), *seen.hosts]
    assert list(RULE.check(seen)) == []

    seen.hosts = [*seen.hosts, replace(seen.hosts[-1], at=seen.now, executors=())]
    assert list(RULE.check(seen)) == []
