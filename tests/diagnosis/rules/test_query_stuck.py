from collections import deque
from dataclasses import replace

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.query_stuck import RULE
from ledgerops.model.records import DriverCode, Executor, Running, Stack
from ledgerops.signals.query_view import QueryView
from tests.diagnosis.rules.broker import asked
from tests.diagnosis.rules.crowd import beside, looked_at, neighbour, suspended, watched
from tests.diagnosis.rules.retelling import beside_another, retold
from tests.diagnosis.rules.stacks import COMPUTES, OPEN, POLL, QUERY, READ, SENDS, stacked
from tests.tables import cases

LOCKS = "look in the database for locks and for what its sessions wait for"
PY_SPY = "see at which line the function is: `py-spy dump` on the Python worker"
ANSWERS, DUMP = "check whether the file system or object store answers", "take a thread dump of the task's executor"
UNTOLD = {"interval": None, "plan": {"trigger": None}}
DOUBLES = [1.0] * 8 + [4.5, 9.0, 19.0, 40.0]  # as batches do that read what came while the one before them ran


@cases(
    "case, said",
    ("a batch", {"running": 31}, "a batch has run for 31 s; the usual is 1.0 s; Spark reports: Processing new data"),
    (
        "the run ended meanwhile",
        {"running": 31, "stopped": True},
        "a batch has run for 31 s; the usual is 1.0 s; Spark reports: Processing new data",
    ),
    ("silence", {"quiet_for": 61}, "no batch and no idle event for 61 s; the usual is 1.0 s"),
    ("the first one", {"warm": 0, "running": 301}, "a batch has run for 5 min 1 s; Spark reports: Processing new data"),
)
def test_what_takes_far_too_long_is_told(history, case, said):
    [finding] = RULE.check(history(**case))
    assert finding.summary == said


@cases("rows, stuck", ("more and more", [120] * 8 + [1000, 2000, 4500, 9500], False), ("as ever", [120] * 12, True))
def test_a_batch_twice_as_long_as_the_one_before_is_expected_where_the_rows_of_that_time_need_it(history, rows, stuck):
    assert found(history(seconds=DOUBLES, rows=rows, warm_rows=120, running=84)) is stuck


def found(view):
    return bool(list(RULE.check(view)))


def severity(view):
    """Of the finding on the running batch; None without one."""
    return next((finding.severity for finding in Diagnoser((RULE,))(view).findings), None)


@cases(
    "case, expected",
    ("a pause", {"running": 19}, None),
    ("a long pause", {"running": 21}, "warning"),
    ("no pause takes so long", {"running": 31}, "critical"),
    ("ten times of 4 s are not over", {"running": 39, "warm_seconds": 4.0, "interval": 10.0}, None),
    ("ten times of 4 s are over", {"running": 45, "warm_seconds": 4.0, "interval": 10.0}, "critical"),
    ("two intervals have not passed", {"running": 49, "interval": 25.0}, None),
    ("one batch has hung before", {"running": 90, "seconds": [50.0] + [1.0] * 9}, "critical"),
    ("two have taken 50 s and more", {"running": 55, "seconds": [50.0, 120.0] + [1.0] * 9}, None),
    ("not for so long, though", {"running": 80, "seconds": [50.0, 120.0] + [1.0] * 9}, "critical"),
    ("each sixth batch is long", {"running": 44, "seconds": ([1.0] * 5 + [30.0]) * 4}, None),
    ("but not twice as long", {"running": 70, "seconds": ([1.0] * 5 + [30.0]) * 4}, "critical"),
)
def test_it_is_judged_by_what_is_usual_and_one_long_batch_is_not(history, case, expected):
    assert severity(history(**case)) == expected


@cases(
    "moved_ago, running, expected",
    ("tasks end: it has more to do", 3, 25, None),
    ("no task has ended lately", 15, 25, "warning"),
    ("they still do: a nightly load, or rows that were late", 3, 31, "warning"),
    ("no task has ended lately, and no pause takes so long", 15, 31, "critical"),
)
def test_a_batch_whose_tasks_end_gets_no_early_warning_and_is_not_stuck(history, moved_ago, running, expected):
    assert severity(work(history(running=running), moved_ago)) == expected


@cases(
    "moved_ago, running, expected",
    ("tasks of half a minute, one wave after the other", 40, 600, "warning"),
    ("the last wave does not end", 70, 600, "critical"),
)
def test_tasks_that_take_long_end_seldom(history, moved_ago, running, expected):
    view = work(history(running=running), moved_ago)
    view.history.running = replace(view.history.running, pace=30.0)
    assert severity(view) == expected


@cases(
    "moved_ago, steps",
    ("it goes on", 3, ["let the batch end"]),
    ("it hangs", 40, ["take a thread dum", "stop the query an"]),
)
def test_a_batch_that_goes_on_is_let_end(history, moved_ago, steps):
    [finding] = RULE.check(work(history(running=60), moved_ago))
    assert [each.action[:17] for each in finding.remedies] == steps


@cases(
    "used, failed, step",
    ("it computes and answers nothing", 1.9, (0, 2, 4), "see whether the driver's JVM"),
    ("it answers", 1.9, (0, 0, 0), "see in the Spark UI"),
    ("it does not compute", 0.1, (0, 2, 4), "see in the Spark UI"),
)
def test_a_jvm_that_computes_and_answers_nothing_is_asked_for_its_garbage_collection(history, used, failed, step):
    errors = [{"collector_errors": {"host": count}} for count in failed]
    [finding] = RULE.check(watched(looked_at(history(quiet_for=61), driver_jvm=used), errors))

    assert finding.remedies[0].action.startswith(step)
    assert ("the driver's JVM uses 1.9 cores and answers nothing" in finding.summary) is step.startswith("see whether")


def test_a_task_that_hangs_is_dumped_where_it_runs_its_code(history):
    """The looks of `looked_at` have Python workers; on a cluster, and in a query without Python, none are seen."""
    view = looked_at(work(history(running=60), 40))
    without = [replace(look, processes=look.processes[:2]) for look in view.hosts]

    [in_python] = RULE.check(QueryView(view.history, view.now, deque(view.hosts)))
    [in_jvm] = RULE.check(QueryView(view.history, view.now, deque(without)))

    assert in_python.remedies[0].command == "py-spy dump --pid PID_OF_THE_WORKER"
    assert in_jvm.remedies[0].command == "jstack PID_OF_THE_DRIVER", "in local mode that is the executor"


def work(view, moved_ago):
    """The running batch finished its last task so many seconds ago."""
    running = view.history.running
    view.history.running = replace(running, jobs=1, tasks=200, tasks_done=37, moved=running.at - moved_ago)
    return view


@cases(
    "case, moved_ago, stuck",
    ("a first batch whose tasks end", {"warm": 0, "running": 1200}, 299, False),
    ("a first batch whose tasks have stopped ending", {"warm": 0, "running": 1200}, 301, True),
    ("a later batch, however its tasks end", {"running": 60}, 0, True),
)
def test_a_first_batch_may_take_long_while_its_tasks_end(history, case, moved_ago, stuck):
    assert found(work(history(**case), moved_ago)) is stuck


def still(view, jobs=0, tasks=0, for_seconds=61.0, **by):
    """No task of the running batch has begun or ended for so long; `by` as in looked_at."""
    running = view.history.running
    moved = running.at - for_seconds
    view.history.running = replace(running, jobs=jobs, tasks=tasks, tasks_done=0, moved=moved)
    return looked_at(view, busy=0.1, **by)


@cases(
    "case, signs, stuck",
    ("the first batch", {"running": 70}, {}, True),
    ("the third batch: nothing is usual yet", {"seconds": [3, 2], "running": 70}, {}, True),
    ("after a first one that took as long", {"seconds": [68, 12], "running": 70}, {}, True),
    ("of a query with a long interval", {"running": 70, "interval": 30.0}, {}, True),
    ("it may wait for less than a minute", {"running": 59}, {}, False),
    ("a job ended less than a minute ago", {"running": 70}, {"for_seconds": 50.0}, False),
    ("the driver plans or loads", {"running": 200}, {"driver_jvm": 0.3}, False),
    ("the application's own code computes", {"running": 200}, {"driver_python": 0.3}, False),
    ("a job waits for executors", {"running": 200}, {"jobs": 1, "tasks": 2}, False),
    ("two intervals have not passed", {"running": 110, "interval": 60.0}, {}, False),
    ("one run over a long backlog", {"running": 599, "plan": {"trigger": "available_now"}}, {}, False),
    ("not four times as long as the first batch", {"running": 79, "seconds": [20.0]}, {}, False),
    ("nor as the second one", {"running": 79, "seconds": [68.0, 20.0]}, {}, False),
)
def test_a_batch_without_a_past_that_waits_while_nothing_computes_is_stuck_after_a_minute(history, case, signs, stuck):
    """Before that it may load, or wait for executors."""
    assert found(still(history(warm=0, **case), **{"driver_jvm": 0.02, "driver_python": 0.01} | signs)) is stuck


@cases(
    "case",
    ("a long first batch", {"warm": 0, "running": 200}),
    ("long, but a pause may be", {"running": 19}),
    ("batches that double under overload", {"seconds": [4, 8, 16], "running": 32}),
    ("idle", {"quiet_for": 300, "idle": True}),
    ("stopped", {"quiet_for": 900, "stopped": True}),
    ("failed: that is another rule", {"quiet_for": 900, "exception": "boom"}),
    ("the batch has failed", {"running": 31, "exception": "boom"}),
    ("stopped in a batch of usual length", {"running": 2, "stopped": True}),
    ("waiting for a long interval", {"quiet_for": 119, "interval": 60.0}),
    ("real-time mode reports every 5 minutes", {"quiet_for": 500, "plan": {"trigger": "real_time"}}),
    ("one run over a long backlog", {"running": 600, "plan": {"trigger": "available_now"}}),
    ("real-time mode, ten minutes", {"running": 1700, "interval": 600.0, "plan": {"trigger": "real_time"}}),
    ("a first batch of ten long intervals", {"warm": 0, "running": 590, "interval": 60.0}),
    ("silence after a first batch", {"seconds": [60], "warm": 0, "quiet_for": 3000} | UNTOLD),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


@cases(
    "pause, quiet_for, stuck",
    ("back to back, and then silent", 0.0, 61, True),
    ("it has paused for long before", 600.0, 1700, False),
    ("but never for so long", 600.0, 1900, True),
)
def test_silence_counts_by_the_pauses_seen_where_no_trigger_is_told(history, pause, quiet_for, stuck):
    view = history(seconds=[1] * 10, warm=0, quiet_for=quiet_for, **UNTOLD)
    paused = retold(view, lambda n, batch: {"started": batch.started + (pause + n % 3) * n * (pause > 0)})
    paused.history.last_seen = paused.history.batches[-1].ended
    assert found(QueryView(paused.history, paused.history.last_seen + quiet_for)) is stuck


@cases("seconds_ago, stuck", ("a moment", 5.0, False), ("as long", 100.0, True))
def test_a_query_whose_old_events_still_come_is_not_silent(history, seconds_ago, stuck):
    """A listener of the application that takes seconds for each event delays those that ledgerops gets."""
    view = history(quiet_for=100)
    view.history.told_at = view.now - seconds_ago
    assert found(view) is stuck


@cases("unseen, stuck", ("somebody looks", 0, True), ("nobody looks", 100, False))
@cases("case", ("silence", {"quiet_for": 100}), ("a long batch", {"quiet_for": 100, "running": 100}))
def test_what_nobody_watches_is_not_known_to_be_stuck(history, case, unseen, stuck):
    assert found(watched(history(**case), [{}] * 12, quiet_for=unseen)) is stuck


@cases("still, stuck", ("nobody was", 0, True), ("the driver was suspended", 99, False))
@cases("case", ("a batch runs", {"running": 100}), ("none does", {"quiet_for": 100}))
def test_time_in_which_the_driver_was_suspended_does_not_count(history, case, still, stuck):
    view = history(seconds=[1] * 6, **case)
    assert found(suspended(view, still) if still else watched(view, [{}] * 12)) is stuck


@cases(
    "sent, per_offset, cap, stuck",
    ("it reads them all", 120_000, 1.0, {}, False),
    ("they explain three seconds", 3_000, 1.0, {}, True),
    ("most offsets are of transactions, or were compacted", 120_000, 0.1, {}, True),
    ("it reads what a limit allows", 120_000, 1.0, {"maxOffsetsPerTrigger": "1000"}, True),
)
def test_a_batch_that_has_minutes_of_rows_to_read_may_take_its_time(history, sent, per_offset, cap, stuck):
    """The broker was asked as it began: 40 times the usual rows take 40 times the usual second."""
    began = history(seconds=[1] * 6, backlog=[0] * 6, running=1, plan={"rate_limits": cap}, per_offset=per_offset)
    consumed = next(iter(began.lag.consumed.values()))
    told = asked(began, latest=[consumed + sent])
    assert found(QueryView(told.history, told.now + 60, told.hosts, told.others)) is stuck


def test_rows_of_a_source_that_tells_no_heads_are_not_compared_with_what_another_has_left(history):
    began = beside_another(history(seconds=[1] * 6, backlog=[0] * 6, running=1), 9000, heads=False)
    consumed = next(iter(began.lag.consumed.values()))
    told = asked(began, latest=[consumed + 120_000])
    assert not found(QueryView(told.history, told.now + 50, told.hosts, told.others))


@cases(
    "frame, tasks, words, step",
    ("a database", QUERY, True, "; its 2 tasks wait for the database (PgStatement.execute)", LOCKS),
    ("a broker", POLL, True, "; its 2 tasks wait for the broker (KafkaConsumer.position)", "check the broker, and"),
    (
        "the broker of the sink",
        *(SENDS, True, "; its 2 tasks wait for the broker (ProduceRequestResult.awaitAllDependents)"),
        "check the broker of the sink, and",
    ),
    ("a file system, in the driver", OPEN, False, "; the driver waits for the file system (FileSystem.open)", ANSWERS),
    ("Python", READ, True, "; its 2 tasks wait for Python (BasePythonRunner$ReaderInputStream.read)", PY_SPY),
    ("nothing that is known", COMPUTES, True, "", DUMP),
)
def test_what_the_threads_of_a_batch_wait_for_is_said(history, frame, tasks, words, step):
    view = stacked(history(running=31, message="Processing new data"), frame, frame, tasks=tasks)
    view.history.running = replace(view.history.running, tasks=2 * tasks, tasks_done=0)
    [finding] = RULE.check(view)

    assert finding.summary.partition("Processing new data")[2] == words
    assert finding.remedies[0].action.startswith(step)


@cases(
    "calls, computing, step",
    ("a database's client", "psycopg", 0.0, LOCKS),
    ("its rows are worked on", "psycopg", 0.9, "see what the function of foreachBatch does"),
    ("another package", "requests", 0.0, "see what the function of foreachBatch does"),
)
def test_a_function_that_calls_a_database_and_does_not_compute_waits_for_it(history, calls, computing, step):
    view = history(running=31, plan={"sink": "ForeachBatchSink"})
    view.history.running = replace(view.history.running, tasks=0, tasks_done=0)
    view.history.driver_code = DriverCode(view.now, "run-1", 21, 21, "/srv/crm.py", 28, "post", calls)
    [finding] = RULE.check(looked_at(view, busy=0.5, driver_python=computing))

    assert finding.summary.endswith(f"; the function of foreachBatch is at crm.py:28 in post, which calls {calls}")
    assert finding.remedies[0].action.startswith(step)


def test_of_tasks_that_end_one_after_another_it_is_said_too_and_nobody_is_told_to_start_again(history):
    """A call that times out ends a task now and then."""
    view = stacked(history(running=31, message="Processing new data"), QUERY, QUERY)
    view.history.running = replace(view.history.running, tasks=9, tasks_done=4, moved=view.now - 2)
    [finding] = RULE.check(view)

    words = "; its tasks still end; its 2 tasks wait for the database (PgStatement.execute)"
    assert (finding.summary.partition("Processing new data")[2], finding.at_most) == (words, "warning")
    assert [each.action[:24] for each in finding.remedies] == [LOCKS[:24]]


@cases(
    "done, runs, moved, words",
    ("all wait", 0, 0, 20, "; its 50 tasks wait for a free slot"),
    ("those that are left wait", 30, 0, 20, "; its 20 tasks wait for a free slot"),
    ("one runs", 0, 1, 20, ""),
    ("one has just ended", 30, 0, 5, ""),
    ("an older recording does not tell", 0, None, 20, ""),
)
def test_a_batch_none_of_whose_tasks_runs_waits_for_others_to_end(history, done, runs, moved, words):
    view = history(running=31, message="Processing new data")
    changes = {"tasks": 50, "tasks_done": done, "tasks_running": runs, "moved": view.now - moved}
    view.history.running = replace(view.history.running, **changes)
    [finding] = RULE.check(view)

    assert finding.summary.partition("Processing new data")[2].removeprefix("; its tasks still end") == words
    assert finding.remedies[0].action.startswith("see in the Spark UI, page Stages, whose tasks run") is bool(words)
    assert len(finding.remedies) == 1 or not words


DRIVER = Executor("driver", True, 0, 0, 0, 0, 90.0, 0.1, 2**20, 2**29, 2**28)
ONE = replace(DRIVER, executor_id="1", cores=2)


@cases(
    "executors, running, runs, severity",
    ("the first batch, after a minute", [DRIVER], 61, 0, "info"),
    ("it may wait so long", [DRIVER], 59, 0, None),
    ("it has waited five minutes", [DRIVER], 301, 0, "critical"),
    ("an executor is there", [DRIVER, ONE], 61, 0, None),
    ("it runs a task by now", [DRIVER], 61, 2, None),
    ("Spark tells of no executor, nor of the driver", [], 61, 0, None),
)
def test_a_batch_whose_application_has_no_executor_waits_for_one(history, executors, running, runs, severity):
    view = history(warm=0, running=running, message="Processing new data")
    waits = {"jobs": 1, "tasks": 2, "tasks_done": 0, "tasks_running": runs, "moved": view.now - running}
    view.history.running = replace(view.history.running, **waits)
    hosts = [replace(host, executors=tuple(executors)) for host in view.hosts]
    verdict = Diagnoser()(QueryView(view.history, view.now, deque(hosts)))

    assert [each.severity for each in verdict.root_causes] == ([severity] if severity else [])
    for root in verdict.root_causes:
        assert root.summary.endswith("; its 2 tasks wait for an executor: there is none")
        assert root.remedies[0].action.startswith("see on the page of the cluster manager")


@cases(
    "running, words",
    ("of one query", [2], " (tasks of query-0 run)"),
    ("of several", [1, 0, 1], " (tasks of 2 other queries run)"),
    ("of none that is watched", [0], ""),
)
def test_whose_tasks_run_while_a_batch_waits_for_a_slot_is_said(history, running, words):
    view = history(running=31, message="Processing new data")
    view.history.running = replace(view.history.running, tasks=2, tasks_done=0, tasks_running=0, moved=view.now - 20)
    others = [neighbour(view, None, f"query-{number}") for number in range(len(running))]
    for other, tasks in zip(others, running, strict=True):
        other.set_running(Running(view.now, other.run_id, view.now - 60, "Processing", 1, 4, 0, tasks))
    [finding] = RULE.check(beside(view, *others))

    assert finding.summary.partition("Processing new data")[2] == f"; its 2 tasks wait for a free slot{words}"


GENERATED = "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage1.processNext"
REGEX, EPOLL = "java.util.regex.Pattern$CharPropertyGreedy.match", "sun.nio.ch.EPoll.wait"


@cases(
    "top, runs, words, severity",
    ("in a library", REGEX, True, "; its 2 tasks compute (Pattern$CharPropertyGreedy.match)", "warning"),
    ("in what Spark generates", GENERATED, True, "; its 2 tasks compute (code of the plan)", "warning"),
    ("before a lock", REGEX, False, "", "critical"),
    ("in a native call that waits", EPOLL, True, "", "critical"),
    ("in a store on the disk", "org.rocksdb.RocksDB.write", True, "", "critical"),
)
def test_tasks_that_compute_are_not_told_to_hang_nor_to_be_started_again(history, top, runs, words, severity):
    view = stacked(history(running=31, message="Processing new data"), "a.Task.run", "a.Task.run")
    both = (Stack(True, 2, (top, "a.Task.run"), runs),)
    view.history.stacks = tuple(replace(look, stacks=both) for look in view.history.stacks)
    view.history.running = replace(view.history.running, tasks=2, tasks_done=0)
    [finding] = RULE.check(view)

    assert finding.summary.partition("Processing new data")[2] == words
    assert finding.at_most == severity
    assert any(step.action.startswith("stop the query") for step in finding.remedies) is not bool(words)
    assert finding.remedies[0].action.startswith("see in the Spark UI, page Jobs" if words else DUMP)


@cases(
    "tasks, done, who",
    ("the others have ended", 8, 7, "the last of its 8 tasks computes"),
    ("one is all there is", 1, 0, "its task computes"),
    ("one waits for a slot, so another may look the same", 8, 6, "its task computes"),
)
def test_one_task_that_computes_is_told_as_the_last_one_where_the_others_have_ended(history, tasks, done, who):
    view = stacked(history(running=31, message="Processing new data"), "a.Task.run", "a.Task.run")
    alone = (Stack(True, 1, (REGEX, "a.Task.run"), True),)
    view.history.stacks = tuple(replace(look, stacks=alone) for look in view.history.stacks)
    view.history.running = replace(view.history.running, tasks=tasks, tasks_done=done)
    [finding] = RULE.check(view)

    assert f"; {who} (Pattern$CharPropertyGreedy.match)" in finding.summary


def test_nothing_is_said_of_continuous_mode_of_which_spark_tells_nothing(history):
    silent = {"quiet_for": 7000, "plan": {"trigger": "continuous", "trigger_interval": 1.0}}
    assert not found(history(**silent))
    assert found(history(**silent | {"plan": {"trigger": "real_time", "trigger_interval": 1.0}}))
