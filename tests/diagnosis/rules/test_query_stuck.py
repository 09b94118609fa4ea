from collections import deque
from dataclasses import replace

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.query_stuck import RULE
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.rules.broker import asked
from tests.diagnosis.rules.crowd import looked_at, watched
from tests.diagnosis.rules.retelling import retold
from tests.diagnosis.rules.stacks import COMPUTES, OPEN, QUERY, READ, stacked


def test_a_batch_that_runs_far_too_long_is_found(history):
    [finding] = RULE.check(history(running=31, message="Processing new data"))

    assert finding.summary == "a batch has run for 31 s; the usual is 1.0 s; Spark reports: Processing new data"


DOUBLES = [1.0] * 8 + [4.5, 9.0, 19.0, 40.0]  # as batches do that read what came while the one before them ran


@pytest.mark.parametrize(
    ("rows", "stuck"),
    [
        pytest.param([120] * 8 + [1000, 2000, 4500, 9500], False, id="as many rows more"),
        pytest.param([120] * 12, True, id="for the same rows"),
    ],
)
def test_a_batch_twice_as_long_as_the_one_before_is_expected_where_the_rows_of_that_time_need_it(history, rows, stuck):
    assert bool(list(RULE.check(history(seconds=DOUBLES, rows=rows, warm_rows=120, running=84)))) is stuck


def severity(view):
    """Of the finding on the running batch; None without one."""
    return next((finding.severity for finding in Diagnoser((RULE,))(view).findings), None)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param({"running": 19}, None, id="a pause"),
        pytest.param({"running": 21}, "warning", id="a long pause"),
        pytest.param({"running": 31}, "critical", id="no pause takes so long"),
        pytest.param({"running": 39, "warm_seconds": 4.0, "interval": 10.0}, None, id="ten times of 4 s are not over"),
        pytest.param(
            {"running": 45, "warm_seconds": 4.0, "interval": 10.0}, "critical", id="ten times of 4 s are over"
        ),
        pytest.param({"running": 49, "interval": 25.0}, None, id="two intervals have not passed"),
        pytest.param({"running": 90, "seconds": [50.0] + [1.0] * 9}, "critical", id="one batch has hung before"),
        pytest.param({"running": 55, "seconds": [50.0, 120.0] + [1.0] * 9}, None, id="two have taken 50 s and more"),
        pytest.param({"running": 80, "seconds": [50.0, 120.0] + [1.0] * 9}, "critical", id="not for so long, though"),
        pytest.param({"running": 44, "seconds": ([1.0] * 5 + [30.0]) * 4}, None, id="each sixth batch is long"),
        pytest.param({"running": 70, "seconds": ([1.0] * 5 + [30.0]) * 4}, "critical", id="but not twice as long"),
    ],
)
def test_it_is_judged_by_what_is_usual_and_one_long_batch_is_not(history, case, expected):
    assert severity(history(**case)) == expected


@pytest.mark.parametrize(
    ("moved_ago", "running", "expected"),
    [
        pytest.param(3, 25, None, id="tasks end: it has more to do"),
        pytest.param(15, 25, "warning", id="no task has ended lately"),
        pytest.param(3, 31, "warning", id="they still do: a nightly load, or rows that were late"),
        pytest.param(15, 31, "critical", id="no task has ended lately, and no pause takes so long"),
    ],
)
def test_a_batch_whose_tasks_end_gets_no_early_warning_and_is_not_stuck(history, moved_ago, running, expected):
    assert severity(work(history(running=running), moved_ago)) == expected


def test_a_batch_that_goes_on_is_let_end(history):
    [goes_on] = RULE.check(work(history(running=60), 3))
    [hangs] = RULE.check(work(history(running=60), 40))

    assert [each.action[:17] for each in goes_on.remedies] == ["let the batch end"]
    assert [each.action[:17] for each in hangs.remedies] == ["take a thread dum", "stop the query an"]


def test_a_task_that_hangs_is_dumped_where_it_runs_its_code(history):
    """The looks of `looked_at` have Python workers; on a cluster, and in a query without Python, none are seen."""
    view = looked_at(work(history(running=60), 40))
    without = [replace(look, processes=look.processes[:2]) for look in view.hosts]

    [in_python] = RULE.check(QueryView(view.history, view.now, deque(view.hosts)))
    [in_jvm] = RULE.check(QueryView(view.history, view.now, deque(without)))

    assert in_python.remedies[0].command == "py-spy dump --pid PID_OF_THE_WORKER"
    assert in_jvm.remedies[0].command == "jstack PID_OF_THE_DRIVER", "in local mode that is the executor"


def test_silence_is_found(history):
    [finding] = RULE.check(history(quiet_for=61))

    assert finding.summary == "no batch and no idle event for 61 s; the usual is 1.0 s"


def test_a_first_batch_may_hang_too(history):
    [finding] = RULE.check(history(warm=0, running=301))

    assert finding.evidence[0].value == pytest.approx(301)


def work(view, moved_ago):
    """The running batch finished its last task so many seconds ago."""
    running = view.history.running
    view.history.running = replace(running, jobs=1, tasks=200, tasks_done=37, moved=running.at - moved_ago)
    return view


def test_a_first_batch_may_take_long_while_its_tasks_end(history):
    assert list(RULE.check(work(history(warm=0, running=1200), moved_ago=299))) == []


@pytest.mark.parametrize(
    ("case", "moved_ago"),
    [
        pytest.param({"warm": 0, "running": 1200}, 301, id="a first batch whose tasks have stopped ending"),
        pytest.param({"running": 60}, 0, id="a later batch, however its tasks end"),
    ],
)
def test_tasks_that_end_excuse_nothing_else(history, case, moved_ago):
    assert list(RULE.check(work(history(**case), moved_ago)))


def still(view, jobs=0, tasks=0, for_seconds=61.0, **by):
    """No task of the running batch has begun or ended for so long; `by` as in looked_at."""
    running = view.history.running
    moved = running.at - for_seconds
    view.history.running = replace(running, jobs=jobs, tasks=tasks, tasks_done=0, moved=moved)
    return looked_at(view, busy=0.1, **by)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0, "running": 70}, id="the first batch"),
        pytest.param({"warm": 0, "seconds": [3, 2], "running": 70}, id="the third batch: nothing is usual yet"),
        pytest.param({"warm": 0, "seconds": [68, 12], "running": 70}, id="after a first one that took as long"),
        pytest.param({"warm": 0, "running": 70, "interval": 30.0}, id="of a query with a long interval"),
    ],
)
def test_a_batch_without_a_past_that_waits_while_nothing_computes_is_stuck_after_a_minute(history, case):
    assert list(RULE.check(still(history(**case), driver_jvm=0.02, driver_python=0.01)))


@pytest.mark.parametrize(
    ("case", "signs"),
    [
        pytest.param({"running": 59}, {}, id="it may wait for less than a minute"),
        pytest.param({"running": 70}, {"for_seconds": 50.0}, id="a job ended less than a minute ago"),
        pytest.param({"running": 200}, {"driver_jvm": 0.3}, id="the driver plans or loads"),
        pytest.param({"running": 200}, {"driver_python": 0.3}, id="the application's own code computes"),
        pytest.param({"running": 200}, {"jobs": 1, "tasks": 2}, id="a job waits for executors"),
        pytest.param({"running": 110, "interval": 60.0}, {}, id="two intervals have not passed"),
        pytest.param({"running": 599, "plan": {"trigger": "available_now"}}, {}, id="one run over a long backlog"),
        pytest.param({"running": 79, "seconds": [20.0]}, {}, id="not four times as long as the first batch"),
        pytest.param({"running": 79, "seconds": [68.0, 20.0]}, {}, id="nor as the second one"),
    ],
)
def test_a_first_batch_may_load_or_wait_for_executors(history, case, signs):
    assert list(RULE.check(still(history(warm=0, **case), **signs))) == []


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="just started"),
        pytest.param({"warm": 0, "running": 200}, id="a long first batch"),
        pytest.param({"running": 19}, id="long, but a pause may be"),
        pytest.param({"seconds": [4, 8, 16], "running": 32}, id="batches that double under overload"),
        pytest.param({"quiet_for": 300, "idle": True}, id="idle"),
        pytest.param({"quiet_for": 900, "stopped": True}, id="stopped"),
        pytest.param({"quiet_for": 900, "exception": "boom"}, id="failed: that is another rule"),
        pytest.param({"quiet_for": 119, "interval": 60.0}, id="waiting for a long interval"),
        pytest.param({"quiet_for": 500, "plan": {"trigger": "real_time"}}, id="real-time mode reports every 5 minutes"),
        pytest.param({"running": 600, "plan": {"trigger": "available_now"}}, id="one run over a long backlog"),
        pytest.param(
            {"running": 1700, "interval": 600.0, "plan": {"trigger": "real_time"}}, id="real-time mode, ten minutes"
        ),
        pytest.param({"warm": 0, "running": 590, "interval": 60.0}, id="a first batch of ten long intervals"),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


@pytest.mark.parametrize(
    ("pause", "quiet_for", "stuck"),
    [
        pytest.param(0.0, 61, True, id="back to back, and then silent"),
        pytest.param(600.0, 1700, False, id="it has paused for long before"),
        pytest.param(600.0, 1900, True, id="but never for so long"),
    ],
)
def test_silence_counts_by_the_pauses_seen_where_no_trigger_is_told(history, pause, quiet_for, stuck):
    view = history(seconds=[1] * 10, warm=0, interval=None, plan={"trigger": None}, quiet_for=quiet_for)
    paused = retold(view, lambda n, batch: {"started": batch.started + (pause + n % 3) * n * (pause > 0)})
    paused.history.last_seen = paused.history.batches[-1].ended

    assert bool(list(RULE.check(QueryView(paused.history, paused.history.last_seen + quiet_for)))) is stuck


def test_silence_after_a_first_batch_says_nothing_where_no_trigger_is_told(history):
    view = history(seconds=[60], warm=0, interval=None, plan={"trigger": None}, quiet_for=3000)

    assert list(RULE.check(view)) == []


@pytest.mark.parametrize(
    ("unseen", "stuck"), [pytest.param(0, True, id="somebody looks"), pytest.param(100, False, id="nobody looks")]
)
@pytest.mark.parametrize(
    "case", [{"quiet_for": 100}, {"quiet_for": 100, "running": 100}], ids=["silence", "a long batch"]
)
def test_what_nobody_watches_is_not_known_to_be_stuck(history, case, unseen, stuck):
    assert bool(list(RULE.check(watched(history(**case), [{}] * 12, quiet_for=unseen)))) is stuck


@pytest.mark.parametrize(
    ("sent", "per_offset", "cap", "stuck"),
    [
        pytest.param(120_000, 1.0, {}, False, id="it reads them all"),
        pytest.param(3_000, 1.0, {}, True, id="they explain three seconds"),
        pytest.param(120_000, 0.1, {}, True, id="most offsets are of transactions, or were compacted"),
        pytest.param(120_000, 1.0, {"maxOffsetsPerTrigger": "1000"}, True, id="it reads what a limit allows"),
    ],
)
def test_a_batch_that_has_minutes_of_rows_to_read_may_take_its_time(history, sent, per_offset, cap, stuck):
    """The broker was asked as it began: 40 times the usual rows take 40 times the usual second."""
    began = history(seconds=[1] * 6, backlog=[0] * 6, running=1, plan={"rate_limits": cap}, per_offset=per_offset)
    consumed = next(iter(began.lag.consumed.values()))
    told = asked(began, latest=[consumed + sent])
    later = QueryView(told.history, told.now + 60, told.hosts, told.others)

    assert bool(list(RULE.check(later))) is stuck


@pytest.mark.parametrize(
    ("frame", "tasks", "words", "step"),
    [
        pytest.param(
            QUERY,
            True,
            "; its 2 tasks wait for the database (PgStatement.execute)",
            "look in the database for locks and for what its sessions wait for",
            id="a database",
        ),
        pytest.param(
            OPEN,
            False,
            "; the driver waits for the file system (FileSystem.open)",
            "check whether the file system or object store answers",
            id="a file system, in the driver",
        ),
        pytest.param(
            READ,
            True,
            "; its 2 tasks wait for Python (BasePythonRunner$ReaderInputStream.read)",
            "take a thread dump of the task's executor",
            id="Python",
        ),
        pytest.param(COMPUTES, True, "", "take a thread dump of the task's executor", id="nothing that is known"),
    ],
)
def test_what_the_threads_of_a_batch_wait_for_is_said(history, frame, tasks, words, step):
    view = stacked(history(running=31, message="Processing new data"), frame, frame, tasks=tasks)
    view.history.running = replace(view.history.running, tasks=2 * tasks, tasks_done=0)
    [finding] = RULE.check(view)

    assert finding.summary.partition("Processing new data")[2] == words
    assert finding.remedies[0].action.startswith(step)


def test_of_tasks_that_end_one_after_another_it_is_not_said(history):
    view = stacked(history(running=31), QUERY, QUERY)
    view.history.running = replace(view.history.running, tasks=9, tasks_done=4, moved=view.now - 2)

    assert "database" not in next(RULE.check(view)).summary
