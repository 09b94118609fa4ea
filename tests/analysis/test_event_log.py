"""Event logs that Spark 4.2 wrote (their unread fields cut off): one plain file, one rolling zstd folder."""

import re
import shutil
from collections import Counter

import orjson
import pytest

from ledgerops.analysis import event_log, event_log_files
from ledgerops.analysis.session import Investigation
from ledgerops.errors import UserError
from ledgerops.runtime.replay import replay
from tests.paths import RECORDED
from tests.tables import cases

LOGS = RECORDED / "eventlog"
PLAIN = LOGS / "local-2"
ROLLING = LOGS / "eventlog_v2_local-1"
BOTH = pytest.mark.parametrize("path", [PLAIN, ROLLING], ids=["plain file", "rolling zstd folder"])
SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
LISTENER = "org.apache.spark.sql.streaming.StreamingQueryListener$"


def plain_events():
    return [orjson.loads(line) for line in PLAIN.read_bytes().splitlines()]


def written(folder, events):
    """A log of these events."""
    log = folder / "local-3"
    log.write_bytes(b"".join(orjson.dumps(event) + b"\n" for event in events))
    return log


def history_of(path, query):
    return replay(event_log.read(path)).registry.queries[query].history


def seen(path, kind):
    return [each for each in event_log.read(path) if each.kind == kind]


@BOTH
def test_queries_batches_tasks_and_ends_are_read(path):
    every = list(event_log.read(path))
    kinds = Counter(each.kind for each in every)
    registry = replay(every).registry

    assert kinds["started"] == kinds["terminated"] == len(registry.queries)
    assert kinds["tasks"] == kinds["progress"] > 5
    assert all(each.query for each in every if each.kind != "host")
    assert registry.queries["crashes"].verdict.status == "failed"
    assert registry.queries["daily_counts"].verdict.status == "stopped"
    assert registry.queries["idle_files"].history.idle_since is not None


def test_the_plan_is_read_from_the_physical_plan():
    plan = history_of(ROLLING, "dedup_customers").plan
    assert plan.stateful and plan.keys == ("customer_id",) and plan.watermarks == {"timestamp": 5.0}
    assert plan.spark_version == "4.2.0" and plan.shuffle_partitions == 2 and plan.python is False


def test_what_a_session_sets_holds_before_what_the_application_was_started_with(tmp_path):
    events = plain_events()
    for event in events:
        if event["Event"].endswith("SQLExecutionStart"):
            event["modifiedConfigs"] = {
                "spark.sql.shuffle.partitions": "300",
                "spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB": "1",
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            }
    plan = history_of(written(tmp_path, events), "daily_counts").plan

    assert plan.shuffle_partitions == 300
    assert plan.state_settings == {"rocksdb.writeBufferSizeMB": "1"}
    assert plan.delta


def test_a_statement_of_foreachbatch_does_not_replace_the_plan_of_a_query_that_keeps_state(tmp_path):
    events = plain_events()
    plan = history_of(PLAIN, "daily_counts").plan
    assert plan.stateful and plan.keys
    for place, event in reversed(list(enumerate(events))):
        if event["Event"].endswith("SQLExecutionStart") and plan.run_id in (
            event.get("jobGroupId"),
            event["description"],
        ):
            merge = {"simpleString": "Exchange hashpartitioning(account#7, 200)", "children": []}
            events.insert(place + 1, {**event, "executionId": event["executionId"] + 10_000, "sparkPlanInfo": merge})
    assert len(events) > len(plain_events())
    assert history_of(written(tmp_path, events), "daily_counts").plan == plan


@pytest.mark.parametrize(("reserved", "slots"), [({}, 2), ({"spark.task.cpus": "2"}, 1)])
def test_an_executor_has_as_many_slots_as_tasks_that_reserve_their_cores_fit(tmp_path, reserved, slots):
    events = plain_events()
    for event in events:
        if event["Event"].endswith("EnvironmentUpdate"):
            event["Spark Properties"] |= reserved
    registry = replay(event_log.read(written(tmp_path, events))).registry
    view = registry.view(registry.queries["daily_counts"], registry.queries["daily_counts"].history.last_seen)

    assert view.cluster.cores == slots


def test_tasks_that_reserve_several_cores_ran_no_longer_than_they_lived(tmp_path):
    events = plain_events()
    for event in events:
        if event["Event"].endswith("TaskEnd"):
            event["Task Metrics"]["Executor Run Time"] *= 16  # as Spark does with spark.task.cpus of 16
    tasks = history_of(written(tmp_path, events), "daily_counts").tasks

    assert tasks
    for stage in (stage for summary in tasks for stage in summary.stages):
        assert 0 < stage.seconds_max <= stage.wall_seconds + 0.001  # Spark counts milliseconds
        assert stage.run_seconds <= stage.tasks * (stage.wall_seconds + 0.001)


@cases(
    "state, reason, failure",
    ("an exception", {"Failed": True},
     {"Reason": "ExceptionFailure", "Full Stack Trace": "IOException: a\n\tat B.c(B:1)"}, "IOException: a"),
    ("its executor was lost", {"Failed": True}, {"Reason": "ExecutorLostFailure", "Loss Reason": "Container killed"},
     "Container killed"),
    ("no more is told", {"Failed": True}, {"Reason": "TaskResultLost"}, "TaskResultLost"),
    ("another attempt was quicker", {"Killed": True}, {"Reason": "TaskKilled"}, None),
)  # fmt: skip
def test_attempts_that_did_not_end_well_count_for_no_work_of_their_stage(tmp_path, state, reason, failure):
    events = plain_events()
    ends = [
        place for place, event in enumerate(events) if event["Event"].endswith("TaskEnd") and event["Stage ID"] == 9
    ]
    place, end = ends[0], events[ends[0]]
    info = end["Task Info"] | state | {"Finish Time": end["Task Info"]["Launch Time"] + 1500}
    events.insert(place, end | {"Task Info": info, "Task End Reason": reason})

    def stages(path):
        return {stage["stage_id"]: stage for summary in seen(path, "tasks") for stage in summary.data["stages"]}

    before, after = stages(PLAIN), stages(written(tmp_path, events))
    failed = {"failed_tasks": 1, "failed_seconds": 1.5, "failure": failure} if failure else {}
    assert after == before | {9: before[9] | failed}


def test_a_stage_that_is_run_again_counts_both_times(tmp_path):
    """After an executor was lost, and with it what the stage had written for the next one."""
    events = plain_events()
    of_stage = (n for n, each in enumerate(events) if each.get("Stage Info", {}).get("Stage ID") == 9)
    place = next(n for n in of_stage if events[n]["Event"].endswith("StageCompleted"))
    ended = next(each for each in events if each["Event"].endswith("TaskEnd") and each["Stage ID"] == 9)
    again = events[place] | {"Stage Info": events[place]["Stage Info"] | {"Stage Attempt ID": 1}}
    events[place + 1 : place + 1] = [ended | {"Stage Attempt ID": 1}, again]

    def attempts(path):
        return [each["stage_id"] for found in seen(path, "tasks") for each in found.data["stages"]].count(9)

    assert (attempts(PLAIN), attempts(written(tmp_path, events))) == (1, 2)


def test_a_query_without_a_name_is_read_as_any_other(tmp_path):
    events = plain_events()
    for event in events:
        for told in (event, event.get("progress", {})):
            if "runId" in told:
                told["name"] = None
    found, named = (Counter(each.kind for each in event_log.read(path)) for path in (written(tmp_path, events), PLAIN))
    assert found == named and found["plan"] > 0


def test_of_many_queries_that_have_ended_none_is_forgotten(tmp_path):
    """Each cell of a notebook that shows a stream leaves one."""
    starts = [each for each in plain_events() if each["Event"] == f"{LISTENER}QueryStartedEvent"]
    log = [each for each in plain_events() if each["Event"].endswith(("LogStart", "ApplicationStart"))]
    for number in range(300):
        run = {"id": f"id-{number}", "runId": f"run-{number}", "name": f"q{number}"}
        log.append(starts[0] | run)
        log.append({"Event": f"{LISTENER}QueryTerminatedEvent", **run, "exception": "boom" if number < 50 else None})
    incidents = Investigation(str(written(tmp_path, log))).diagnose()["incidents"]
    assert {each["query"] for each in incidents} == {f"q{number}" for number in range(50)}


def test_a_statement_that_failed_is_known_with_its_error_and_its_stages_are_nobodys(tmp_path):
    events = plain_events()
    job = next(each for each in events if 9 in each.get("Stage IDs", ()))
    run_id, batch = job["Properties"]["spark.jobGroup.id"], job["Properties"]["streaming.sql.batchId"]
    ended = next(each for each in events if each.get("Stage Info", {}).get("Stage ID") == 9)
    since, until = job["Submission Time"], ended["Stage Info"]["Completion Time"] + 1
    begins = {"Event": f"{SQL}Start", "executionId": 900, "time": since, "sparkPlanInfo": {}}
    begins["description"] = f"upsert\nid = 1\nrunId = {run_id}\nbatch = {batch}"
    ends = {"Event": f"{SQL}End", "executionId": 900, "time": until}

    def summary(error):
        told = list(events)
        told.insert(told.index(job), begins)
        told.insert(told.index(ended) + 1, ends | {"errorMessage": error})
        every = (each.data for each in seen(written(tmp_path, told), "tasks"))
        return next(each for each in every if (each["run_id"], each["batch_id"]) == (run_id, int(batch)))

    well, failed = summary(""), summary("ConcurrentAppendException: conflict\n\tat a.B.c(B:1)")
    assert well["failed"] == []
    assert failed["failed"] == [
        {"started": since / 1000, "ended": until / 1000, "error": "ConcurrentAppendException: conflict"}
    ]
    assert failed["stages"] == [each for each in well["stages"] if each["stage_id"] != 9]

    begins["time"], ends["time"] = 0, 4_000_000_000_000  # all that the batch did
    assert summary("conflict")["stages"] == []


def test_an_executor_that_was_removed_is_known_with_its_reason(tmp_path):
    first, *others = plain_events()
    added = {"Event": "SparkListenerExecutorAdded", "Timestamp": 1_789_999_999_000, "Executor ID": "7"}
    added["Executor Info"] = {"Host": "10.0.0.12", "Total Cores": 2}
    gone = {"Event": "SparkListenerExecutorRemoved", "Timestamp": 1_790_000_000_000, "Executor ID": "7"}
    gone["Removed Reason"] = "Container on 10.0.0.12 killed by 10.0.0.1, exit code 137"
    hosts = seen(written(tmp_path, [first, added, gone, *others]), "host")
    [removed] = next(each.data["removed_executors"] for each in hosts if each.data["removed_executors"])

    assert (removed["executor_id"], removed["removed_at"], removed["host"]) == ("7", 1_790_000_000.0, "10.0.0.12")
    assert removed["reason"] == "Container on 10.0.0.12 killed by <masked>, exit code 137"


def test_tasks_are_summed_up_by_stage():
    history = history_of(ROLLING, "dedup_customers")
    tasks = history.tasks_of(history.last)
    read, shuffled = tasks.stages

    assert (read.reads_shuffle, shuffled.reads_shuffle) == (False, True)
    assert read.records == shuffled.records == history.last.rows
    assert shuffled.records_max > 0.8 * shuffled.records
    assert 0 < shuffled.wall_seconds < history.last.phases["add_batch"]
    assert shuffled.executors["driver"].tasks == 2


def test_a_stage_that_is_run_again_is_summed_up_from_its_second_attempt(tmp_path):
    events = plain_events()
    again = []
    for event in events:
        info = event.get("Stage Info") or {"Stage ID": event.get("Stage ID"), "Stage Attempt ID": 0}
        if info["Stage ID"] == 9 and event["Event"] in ("SparkListenerTaskEnd", "SparkListenerStageCompleted"):
            second = orjson.loads(orjson.dumps(event))
            second.get("Stage Info", second)["Stage Attempt ID"] = 1
            again.append(second)
            info["Failure Reason"] = "org.apache.spark.shuffle.FetchFailedException"
    last = next(index for index, event in enumerate(events) if event.get("Stage Info", {}).get("Stage ID") == 9)
    events[last + 1 : last + 1] = again

    found = seen(written(tmp_path, events), "tasks")
    assert [each.data for each in found] == [each.data for each in seen(PLAIN, "tasks")]


@BOTH
def test_nothing_is_kept_of_batches_and_runs_that_have_ended(path):
    log = event_log.Log()
    for part in event_log_files.log_files(path):
        assert list(log.read(part))

    assert (log._batches, log._tasks, log._stages, log._python) == ({}, {}, {}, {})


def test_a_hot_key_in_batches_that_are_in_time_is_no_finding():
    verdict = replay(event_log.read(ROLLING)).registry.queries["dedup_customers"].verdict
    assert (verdict.root_causes, verdict.health) == ((), 100)


def looks_with_job(tmp_path, *tasks):
    """The active tasks at each look at the executor in a log with tasks of a stage that belongs to no query: whether
    one starts or ends, and so many seconds after the newest stage of a query."""
    events = plain_events()
    place = next(place for place, each in enumerate(events) if each["Event"].endswith("QueryTerminatedEvent"))
    done = max(each["Stage Info"]["Completion Time"] for each in events[:place] if "StageCompleted" in each["Event"])
    added = [
        {
            "Event": f"SparkListenerTask{what}", "Stage ID": 9999, "Stage Attempt ID": 0,
            "Task Info": {"Executor ID": "driver", "Launch Time": done + round(1000 * seconds)},
        }
        for what, seconds in tasks
    ]  # fmt: skip
    log = written(tmp_path, [*events[:place], *added, *events[place:]])
    return [each.data["executors"][0]["active_tasks"] for each in seen(log, "host")]


def test_tasks_of_a_job_that_belongs_to_no_query_are_seen_in_the_slots(tmp_path):
    begin = [("Start", 60.0), ("Start", 60.1), ("Start", 63.0)]

    assert looks_with_job(tmp_path, *begin) == [0, 1, 3]
    assert looks_with_job(tmp_path, *begin[:2], ("End", 62.0), begin[2]) == [0, 1, 2]
    assert looks_with_job(tmp_path, ("End", 59.0), *begin) == [0, 1, 3]
    assert looks_with_job(tmp_path, begin[0], ("End", 70.0)) == [0, 1]


def test_stages_tell_when_their_tasks_could_have_begun_and_what_the_slowest_wrote():
    stages = [stage for tasks in history_of(PLAIN, "daily_counts").tasks for stage in tasks.stages]

    assert stages and all(0 <= each.started - each.submitted < 2 for each in stages)
    reading = [each for each in stages if each.records and not each.reads_shuffle]
    assert {each.slowest_wrote <= each.records_max for each in reading} == {True}
    assert max(each.slowest_wrote for each in reading) > 0


def test_time_never_runs_backwards():
    times = [each.at for each in event_log.read(ROLLING) if each.kind in ("tasks", "terminated")]
    assert times == sorted(times)


def test_a_log_that_is_still_written_is_read_as_far_as_it_goes(tmp_path):
    torn = tmp_path / "local-3.inprogress"
    torn.write_bytes(PLAIN.read_bytes()[:-100])
    half = tmp_path / "eventlog_v2_local-4"
    half.mkdir()
    packed = (ROLLING / "events_1_local-1.zstd").read_bytes()
    (half / "events_1_local-4.zstd").write_bytes(packed[: len(packed) - 50])

    assert replay(event_log.read(torn)).registry.queries
    list(event_log.read(half))


def test_an_event_that_is_too_long_is_counted_and_the_others_are_read(tmp_path, capsys):
    lines = PLAIN.read_bytes().splitlines(keepends=True)
    plan = b'{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart","x":"%s"}\n'
    other = b'{"Event":"SparkListenerDriverAccumUpdates","x":"%s"}\n'  # not read, however long it is
    long = b"x" * (9 * 1024**2)
    log = tmp_path / "local-5"
    log.write_bytes(b"".join([*lines[:-5], plan % long, other % long, plan % long, *lines[-5:]]))
    (tmp_path / "plain").write_bytes(b"".join([*lines[:-5], other % long, *lines[-5:]]))

    found = Investigation(str(log)).diagnose()
    assert capsys.readouterr().err == f"ledgerops: skipped 2 records of {log} that could not be read\n"
    whole = Investigation(str(tmp_path / "plain")).diagnose()
    assert found["queries"] == whole["queries"]
    assert capsys.readouterr().err == ""


def test_the_newest_compacted_part_stands_for_those_before_it(tmp_path):
    for part in ROLLING.iterdir():
        shutil.copy(part, tmp_path)
    (tmp_path / "events_0_local-1.zstd").write_bytes(b"never read")
    shutil.copy(ROLLING / "events_1_local-1.zstd", tmp_path / "events_1_local-1.zstd.compact")

    assert len(list(event_log.read(tmp_path))) == len(list(event_log.read(ROLLING)))


@cases(
    "line, bad",
    ("no task", b'{"Event":"SparkListenerTaskEnd"}', 0),
    ("wrong types", b'{"Event":"SparkListenerJobStart","Job ID":1,"Stage IDs":"x","Properties":[]}', 0),
    ("an unknown event", b'{"Event":"SomethingNew","x":1}', 0),
    ("no progress", b'{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"}', 0),
    ("no object", b"[]", 0),
    ("no JSON", b'{"Event": broken', 1),
)
def test_an_odd_line_loses_no_other(tmp_path, line, bad):
    path, lines = tmp_path / "local-5", PLAIN.read_bytes().splitlines(keepends=True)
    for place in (0, 9)[bad:]:  # a file that begins with no JSON is no event log
        path.write_bytes(b"".join([*lines[:place], line + b"\n", *lines[place:]]))
        found = replay(event_log.read(path))
        assert found.bad == bad
        assert list(found.registry.queries) == list(replay(event_log.read(PLAIN)).registry.queries)


def test_jobs_with_a_group_of_their_own_belong_to_their_query(tmp_path):
    path = tmp_path / "local-5"
    path.write_bytes(re.sub(rb'"spark.jobGroup.id":"[^"]*"', b'"spark.jobGroup.id":"load"', PLAIN.read_bytes()))
    whole, found = ([each.data for each in event_log.read(log) if each.kind == "tasks"] for log in (PLAIN, path))
    assert whole and found == whole


def test_a_file_that_begins_otherwise_is_no_event_log(tmp_path):
    path = tmp_path / "local-5"
    path.write_bytes(b'{"Event": broken\n' + PLAIN.read_bytes())
    with pytest.raises(UserError, match=r"local-5:1: not a line of an event log"):
        list(event_log.read(path))


def test_what_cannot_be_read_is_said(tmp_path):
    (tmp_path / "eventlog-2026-11-22--08-00.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(UserError, match=r"compressed with gz; unpack it, and give the files in it"):
        list(event_log.read(tmp_path))
    (tmp_path / "local-6.lz4").write_bytes(b"LZ4Block")
    with pytest.raises(UserError, match=r"compressed with lz4; for the next run set spark\.eventLog"):
        list(event_log.read(tmp_path / "local-6.lz4"))


def test_a_folder_with_several_logs_asks_which(tmp_path):
    shutil.copytree(ROLLING, tmp_path / ROLLING.name)
    shutil.copy(PLAIN, tmp_path)

    assert event_log_files.is_event_log(tmp_path)
    with pytest.raises(UserError, match="holds 2 event logs; give one of them"):
        list(event_log.read(tmp_path))


def test_a_log_of_which_no_part_is_there_yet_is_one_line(tmp_path):
    (tmp_path / "eventlog_v2_app-1").mkdir()
    (tmp_path / "eventlog_v2_app-1" / "appstatus_app-1.inprogress").touch()
    with pytest.raises(UserError, match=r"no event log in .*eventlog_v2_app-1: Spark shows a part only once"):
        list(event_log.read(tmp_path / "eventlog_v2_app-1"))


def test_a_compaction_that_was_broken_off_stands_for_nothing(tmp_path):
    folder = shutil.copytree(ROLLING, tmp_path / ROLLING.name)
    whole = list(event_log.read(folder))
    newest = max(folder.glob("events_*"))
    newest.with_name(f"{newest.name}.compact.inprogress").write_bytes(b"")
    assert list(event_log.read(folder)) == whole


def test_a_recording_is_no_event_log(tmp_path):
    (tmp_path / "recording-000001.jsonl").write_bytes(orjson.dumps({"at": "2026-01-01T00:00:00Z", "kind": "idle"}))

    assert not event_log_files.is_event_log(tmp_path)
    assert not event_log_files.is_event_log(tmp_path / "recording-000001.jsonl")
    assert not event_log_files.is_event_log(tmp_path / "absent")


SKEWED = RECORDED / "skewed-app"
SKEW_BEGINS = 1_795_273_868.0  # when the application began to give 80 % of its rows to one account


def test_an_application_that_never_knew_ledgerops_is_diagnosed_from_its_event_log_alone():
    """`applyInPandasWithState` over 40 accounts at 4,000 rows a second; from its fortieth second 80 % are of one."""
    log = SKEWED / "eventlog_v2_local-3"
    before = replay(event_log.read(log), at=SKEW_BEGINS).registry.queries["account_ratings"].verdict
    after = replay(event_log.read(log)).registry.queries["account_ratings"].verdict

    # its batches of 5 s never pause, which harms nobody, and Python is what they consist of
    assert (before.status, {finding.severity for finding in before.findings}) == ("healthy", {"info"})
    [cause] = after.root_causes
    assert (cause.rule, cause.severity, cause.component.detail) == ("key-skew", "critical", "account")
    assert cause.explains == ("falling-behind",)
    assert {each.rule for each in cause.ruled_out} >= {"slow-sink", "straggler"}


@pytest.mark.parametrize("ended", [False, True], ids=["log still written", "run stopped"])
def test_a_batch_that_never_finished_is_reported_where_the_log_ends(tmp_path, ended):
    """30 s after the second batch of a query began; with the end of its run or without it."""
    events = plain_events()
    begun = next(
        index
        for index, each in enumerate(events)
        if each["Event"] == "SparkListenerJobStart" and each["Properties"].get("streaming.sql.batchId") == "1"
    )
    run_id = events[begun]["Properties"]["spark.jobGroup.id"]
    end = [each for each in events[begun:] if ended and each.get("runId") == run_id and "Terminated" in each["Event"]]
    log = written(tmp_path, [*events[:begun], {**events[begun], "Submission Time": 1_800_000_000_000}, *end])

    [running] = [each for each in seen(log, "batch_running") if each.data["run_id"] == run_id]
    assert running.data["since"] == 1_800_000_000.0


def test_of_batches_that_finished_none_is_reported_as_at_work():
    assert {each.query for each in seen(PLAIN, "batch_running")} <= {"crashes"}


START = {"Event": "SparkListenerApplicationStart", "App ID": "a", "App Name": "b", "Timestamp": 1_700_000_000_000}
RUN = {"id": "i", "runId": "r", "name": "q"}
BEGUN = {"Event": f"{LISTENER}QueryStartedEvent", **RUN, "timestamp": "2023-11-14T22:13:21.000Z"}
OVER = {"Event": "SparkListenerApplicationEnd", "Timestamp": 1_700_000_005_000}
BATCH = {**RUN, "batchId": 0, "timestamp": "2023-11-14T22:13:21.000Z", "batchDuration": 500, "sources": []}
REPORTED = {"Event": f"{LISTENER}QueryProgressEvent", "progress": {**BATCH, "sink": {"description": "noop"}}}
FAILED = {"Event": f"{LISTENER}QueryTerminatedEvent", **RUN, "exception": "java.lang.OutOfMemoryError: Java heap space"}


def at_work(*tasks, ended):
    """A batch from the fifth second on with one task after the other, each of them from one second to another; then the
    next job of another query."""
    moment, name = 1_700_000_000_000, "SparkListener{}".format
    job = {"Stage IDs": [0], "Properties": {"spark.jobGroup.id": "r", "streaming.sql.batchId": "0"}}
    yield {"Event": name("JobStart"), "Submission Time": moment + 5000, **job}
    for begin, end in tasks:
        info = {"Executor ID": "driver", "Launch Time": moment + 1000 * begin, "Failed": False}
        yield {"Event": name("TaskStart"), "Stage ID": 0, "Task Info": info}
        info = {**info, "Finish Time": moment + 1000 * end}
        yield {"Event": name("TaskEnd"), "Stage ID": 0, "Stage Attempt ID": 0, "Task Info": info}
    other = {"Stage IDs": [1], "Properties": {"spark.jobGroup.id": "other", "streaming.sql.batchId": "0"}}
    yield {"Event": name("JobStart"), "Submission Time": moment + 1000 * ended, **other}


@cases(
    "tasks, ended, reports",
    ("a short one is reported where the log ends alone", [(5, 9)], 14, [(14, 1)]),
    ("of ten seconds", [(5, 9)], 16, [(15, 1), (16, 1)]),
    ("in silence nothing new is known", [(5, 9)], 90, [(15, 1), (90, 1)]),
    ("again and again", [(5, 12), (12, 19), (19, 26)], 26, [(15, 1), (20, 2), (26, 3)]),
)
def test_a_batch_that_takes_long_is_reported_while_it_runs_with_its_tasks_so_far(tmp_path, tasks, ended, reports):
    log = written(tmp_path, [START, BEGUN, *at_work(*tasks, ended=ended)])
    found = seen(log, "batch_running")

    assert [(each.at - 1_700_000_000, each.data["tasks_done"]) for each in found] == reports
    assert {each.data["since"] for each in found} == {1_700_000_005.0}


@pytest.mark.parametrize("moment", [10**18, 1e308, -5], ids=["far", "too far to add to", "before all"])
def test_a_task_with_an_absurd_time_neither_hides_a_batch_nor_stops_the_reading(tmp_path, moment):
    begin, *_, end = at_work((5, 6), ended=30)
    info = {"Executor ID": "driver", "Launch Time": moment, "Finish Time": moment, "Failed": False}
    absurd = {"Event": "SparkListenerTaskEnd", "Stage ID": 0, "Stage Attempt ID": 0, "Task Info": info}

    assert seen(written(tmp_path, [START, BEGUN, begin, absurd, end]), "batch_running")


TASK = {"Executor ID": "driver", "Launch Time": 1_700_000_006_000, "Failed": False}
ENDED = {**TASK, "Finish Time": 1_700_000_007_000}
STAGE = {"Stage ID": 0, "Stage Attempt ID": 0, "Completion Time": 1_700_000_008_000}


@cases(
    "events, counts",
    ("a task runs", [("TaskStart", {"Task Info": TASK})], (1, 0, 1)),
    ("the log lacks its begin", [("TaskEnd", {"Task Info": ENDED})], (1, 1, 0)),
    ("it failed", [("TaskStart", {"Task Info": TASK}), ("TaskEnd", {"Task Info": {**ENDED, "Failed": True}})],
     (0, 0, 0)),
    ("its second copy outlives the stage",
     [*[("TaskStart", {"Task Info": TASK})] * 2, ("TaskEnd", {"Task Info": ENDED}),
      ("StageCompleted", {"Stage Info": STAGE})],
     (1, 1, 0)),
)  # fmt: skip
def test_the_tasks_of_a_running_batch_are_those_that_run_and_those_that_are_done(tmp_path, events, counts):
    begin, *rest = at_work(ended=16)
    tasks = [{"Event": f"SparkListener{name}", "Stage ID": 0, "Stage Attempt ID": 0, **event} for name, event in events]
    first, _ = seen(written(tmp_path, [START, BEGUN, begin, *tasks, *rest]), "batch_running")

    assert tuple(first.data[name] for name in ("tasks", "tasks_done", "tasks_running")) == counts


@cases(
    "tasks, causes",
    ("its tasks end", [(second, second + 1) for second in range(5, 400)], []),
    ("nothing ends", [(5, 6)], ["query-stuck"]),
)
def test_a_batch_that_takes_long_is_not_stuck_while_its_tasks_end(tmp_path, tasks, causes):
    log = written(tmp_path, [START, BEGUN, *at_work(*tasks, ended=400)])
    [found] = Investigation(str(log)).diagnose()["queries"]

    assert [cause["rule"] for cause in found["root_causes"]] == causes


@cases(
    "events, status, causes",
    ("the log goes on", [START, BEGUN], "starting", []),
    ("the application ended", [START, BEGUN, OVER], "stopped", []),
    ("the log goes on, and its beginning is gone", [REPORTED], "starting", []),
    ("the application ended, and the beginning of the log is gone", [REPORTED, OVER], "stopped", []),
    ("a failure is written after its end", [START, BEGUN, OVER, FAILED], "failed", ["query-failed"]),
)
def test_the_end_of_an_application_ends_its_queries(tmp_path, events, status, causes):
    log = written(tmp_path, events)
    [found] = Investigation(str(log)).diagnose()["queries"]

    assert (found["status"], [cause["rule"] for cause in found["root_causes"]]) == (status, causes)
    assert [each.at for each in seen(log, "terminated")] == [1_700_000_005.0] * (status != "starting")


def test_a_failure_is_dated_by_the_statement_that_failed_without_a_job(tmp_path):
    """Spark writes the end of a query without a time."""
    statement = {"Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd", "executionId": 1}
    log = written(tmp_path, [START, BEGUN, statement | {"time": 1_700_000_004_000}, FAILED])

    assert [each.at for each in seen(log, "terminated")] == [1_700_000_004.0]


@pytest.mark.parametrize("first", ["memory", "cores"])
def test_the_memory_of_executors_is_known_from_their_block_managers(tmp_path, first):
    added = {"Event": "SparkListenerExecutorAdded", "Executor ID": "1", "Executor Info": {"Total Cores": 2}}
    memory = {"Event": "SparkListenerBlockManagerAdded", "Block Manager ID": {"Executor ID": "1"}}
    memory |= {"Maximum Memory": 700, "Maximum Onheap Memory": 600, "Timestamp": 1_700_000_000_000}
    events = [memory, added | {"Timestamp": 1_700_000_000_000}]
    *_, host = seen(written(tmp_path, events if first == "memory" else events[::-1]), "host")

    assert [(each["cores"], each["memory_max_bytes"]) for each in host.data["executors"]] == [(2, 600)]
