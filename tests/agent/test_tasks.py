import inspect
import json
import time
from urllib.parse import parse_qs, urlsplit

import pytest

from ledgerops.agent.spark_rest import SparkRest, parse_execution
from ledgerops.agent.tasks import MAX_QUESTIONS, TaskCollector, batches_to_read, parse_duration, ran_seconds
from ledgerops.model.observations import build
from ledgerops.model.records import ExecutorShare, TaskSummary
from tests.agent.fakes import FakeSession, queue, roster_of, run_of, taken
from tests.build import T0
from tests.serving import Background, Quiet
from tests.tables import cases

RUN = "fc00ce39-924c-454a-927e-ae1b3d49f3f2"


def execution(number, batch, jobs=(), status="COMPLETED", run_id=RUN):
    text = f"daily\ncounts\nid = ffc59b0f-896c-4c1d-9fe7-875fd598ee3a\nrunId = {run_id}\nbatch = {batch}"
    job_ids = {"runningJobIds": [], "successJobIds": list(jobs), "failedJobIds": []}
    return {"id": number, "status": status, "description": text, **job_ids}


def page_of(*executions):
    return [parse_execution(each) for each in executions]


def task(index, seconds, records, wrote=0):
    read = {"inputMetrics": {"recordsRead": 0}, "shuffleReadMetrics": {"recordsRead": records}}
    written = {"outputMetrics": {"recordsWritten": 0}, "shuffleWriteMetrics": {"recordsWritten": wrote}}
    metrics = {"executorRunTime": seconds * 1000, **read, **written}
    return {"index": index, "partitionId": index, "status": "SUCCESS", "taskMetrics": metrics}


def stage(number, tasks, **changes):
    times = {
        "submissionTime": "2027-01-15T08:00:00.250GMT",
        "firstTaskLaunchedTime": "2027-01-15T08:00:01.000GMT",
        "completionTime": "2027-01-15T08:00:03.500GMT",
    }
    sums = {
        "numTasks": tasks, "numCompleteTasks": tasks, "numFailedTasks": 0,
        "executorRunTime": 3000, "executorCpuTime": 2_000_000_000, "jvmGcTime": 100,
        "inputRecords": 0, "shuffleReadRecords": 130, "inputBytes": 0, "shuffleReadBytes": 900, "shuffleWriteBytes": 0,
        "memoryBytesSpilled": 5, "diskBytesSpilled": 6,
    }  # fmt: skip
    on_driver = {"succeededTasks": tasks, "taskTime": 3100, "inputRecords": 0, "shuffleReadRecords": 130}
    distributions = {
        "quantiles": [0.5, 1.0],
        "executorRunTime": [200.0, 2000.0],
        "inputMetrics": {"recordsRead": [0.0, 0.0]},
        "shuffleReadMetrics": {"readRecords": [10.0, 100.0]},
    }
    summed_up = {"executorSummary": {"driver": on_driver}, "taskMetricsDistributions": distributions}
    named = {"status": "COMPLETE", "stageId": number, "attemptId": 0, "name": "start"}
    return {**named, **times, **sums, **summed_up, **changes}


class FakeSpark:
    """Spark's REST interface: pages of executions, jobs, stages and tasks. Batch 5 has ended."""

    def __init__(self):
        self.batch(5)
        self.nodes = []
        self.asked = []
        self.pages = []  # the ids on each page of executions
        self.broken = False
        fake = self

        class Handler(Quiet):
            def do_GET(self):
                self.reply(*fake.answer(self.path))

        self.server = Background(Handler)
        self.rest = SparkRest(f"{self.server.url}/", "app-1")

    def batch(self, number):
        """All that is known is a batch with one stage of four tasks."""
        self.executions = [execution(0, number), execution(1, number, [7])]
        self.jobs = {7: [40, 41]}
        self.stages = {41: stage(41, 4)}  # 40 was skipped
        self.tasks = {41: [task(0, 0.2, 10), task(1, 0.3, 10), task(2, 0.5, 10), task(3, 2.0, 100, wrote=700)]}

    def jobs_of_one_task(self, count, **changes):
        """All that is known is a batch of so many jobs, with one stage each."""
        numbers = range(count)
        self.executions = [execution(0, 5, numbers) | changes]
        self.jobs = {number: [number] for number in numbers}
        self.stages = {number: stage(number, 1) for number in numbers}
        self.tasks = {number: [task(0, 3.0, 130)] for number in numbers}

    def answer(self, target):
        parts = urlsplit(target)
        path = parts.path.removeprefix("/api/v1/applications/app-1")
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.asked.append(path)
        if self.broken:
            return 200, b"<html>busy</html>"
        match path.strip("/").split("/"):
            case ["sql"]:
                first = int(query["offset"])
                found = self.executions[first : first + int(query["length"])]
                self.pages.append([each["id"] for each in found])
            case ["sql", number]:
                known = next((each for each in self.executions if each["id"] == int(number)), None)
                if known is None:
                    return 404, b"{}"
                found = {**known, "nodes": self.nodes}
            case ["jobs", number]:
                ids = self.jobs[int(number)]
                found = {
                    "stageIds": ids,
                    "numTasks": sum(self.stages[each]["numTasks"] for each in ids if each in self.stages),
                    "numCompletedStages": sum(each in self.stages for each in ids),
                }
            case ["stages", number]:
                if int(number) not in self.stages:
                    return 404, b"{}"
                found = [dict(self.stages[int(number)])]
                asked = query.get("taskStatus")
                ended = [each for each in self.tasks.get(int(number), ()) if asked in (None, each["status"])]
                found[0]["tasks"] = {str(task_id): each for task_id, each in enumerate(ended)}
                if "withSummaries" not in query:
                    del found[0]["taskMetricsDistributions"]
            case ["stages", number, _, "taskList"]:
                found = self.tasks[int(number)]
        return 200, json.dumps(found).encode()


@pytest.fixture
def ui():
    fake = FakeSpark()
    yield fake
    fake.server.close()


class Bench:
    """A collector and a run whose batch 5 has ended."""

    def __init__(self, rest, interval=5.0, runs=None):
        self.now = T0
        self.queue = queue()
        self.run = run_of(FakeSession(), RUN, last_batch=5)
        roster = roster_of(*(runs or [self.run]))
        self.collector = TaskCollector(self.queue, roster, lambda: rest, interval, clock=lambda: self.now)

    def collect(self):
        self.collector.collect()
        return [data for kind, data in taken(self.queue) if kind == "tasks"]

    def stages(self):
        """What is told of the stages of the one batch that is new."""
        [data] = self.collect()
        return build(TaskSummary, data).stages

    def later(self, last_batch):
        """The batches up to this have ended, and the interval is over."""
        self.run.last_batch, self.now = last_batch, self.now + 5


@pytest.fixture
def bench(ui):
    return Bench(ui.rest)


def test_the_newest_batch_is_summed_up_from_its_tasks(bench):
    [data] = bench.collect()

    [found] = build(TaskSummary, data).stages
    assert (data["run_id"], data["batch_id"]) == (RUN, 5)
    assert (found.seconds_median, found.seconds_max) == (0.4, 2.0)
    assert (found.records_median, found.records_max, found.records) == (10.0, 100.0, 130)
    assert (found.slowest_task, found.slowest_wrote) == (3, 700)
    assert (found.reads_shuffle, found.spill_bytes) == (True, 11)
    assert found.records_score == pytest.approx(100.0)
    assert (found.wall_seconds, found.started - found.submitted) == (2.5, 0.75)
    assert found.executors["driver"].run_seconds == 3.1


def test_of_a_wide_stage_only_the_summary_is_asked_for(ui, bench):
    ui.stages = {41: stage(41, 200)}
    [found] = bench.stages()
    assert (found.seconds_median, found.seconds_max, found.records_max) == (0.2, 2.0, 100.0)
    assert (found.records_score, found.slowest_task) == (None, None)
    assert not any("taskList" in path for path in ui.asked)


def test_the_tasks_of_a_small_job_come_with_its_stages_in_one_request_each(ui, bench):
    bench.collect()
    asked = [path for path in ui.asked if path.startswith(("/jobs", "/stages"))]
    assert asked == ["/jobs/7", "/stages/41"], "40 was skipped: one of the two has ran"


def test_stages_that_were_skipped_push_none_that_ran_out_of_the_summary(ui, bench):
    ui.executions = [execution(0, 5, [9, 7, 8])]  # as Spark lists them
    ui.jobs = {7: [0, 1], 8: [2, 3, 4], 9: [5, 6, 7, 8]}
    ui.stages = {number: stage(number, 1) for number in (0, 1, 4, 8)}
    ui.tasks = {number: [task(0, 3.0, 130)] for number in ui.stages}
    assert [each.stage_id for each in bench.stages()] == [0, 1, 4, 8]


def test_of_very_many_stages_the_newest_are_read_and_of_a_long_batch_all(ui, bench):
    ui.jobs_of_one_task(20)
    [data] = bench.collect()
    assert ([each["stage_id"] for each in data["stages"]], data["whole"]) == ([*range(12, 20)], False)
    assert len(ui.asked) == 1 + 8 + 8 + 1, "the page, jobs, stages, and whether Python ran"

    ui.jobs_of_one_task(20, duration=4000)
    [data] = Bench(ui.rest).collect()
    assert ([each["stage_id"] for each in data["stages"]], data["whole"]) == ([*range(20)], True)


def test_a_narrow_stage_beside_a_wide_one_is_read_task_by_task(ui, bench):
    ui.stages[40] = stage(40, 200)
    wide, narrow = bench.stages()
    assert (wide.slowest_task, wide.seconds_max) == (None, 2.0)
    assert (narrow.slowest_task, narrow.seconds_median) == (3, 0.4)
    assert [path for path in ui.asked if path.endswith("/taskList")] == ["/stages/41/0/taskList"]


def test_of_a_stage_of_one_task_none_is_the_slowest(ui, bench):
    ui.stages, ui.tasks = {41: stage(41, 1)}, {41: [task(0, 3.0, 130)]}
    [found] = bench.stages()
    assert (found.seconds_median, found.records_max, found.slowest_task) == (3.0, 130.0, None)


@pytest.mark.parametrize(("count", "median", "longest"), [(1, 1.5, 1.5), (4, 0.2, 1.0), (200, 0.1, 1.0)])
def test_tasks_that_reserve_two_cores_ran_no_longer_than_they_lived(ui, bench, count, median, longest):
    lived = {"driver": {"succeededTasks": count, "taskTime": 1500, "inputRecords": 0, "shuffleReadRecords": 100}}
    wide = stage(41, count, executorRunTime=3000, executorSummary=lived)
    wide["taskMetricsDistributions"]["duration"] = [100.0, 1000.0]
    seconds = enumerate((0.1, 0.2, 0.2, 1.0))
    tasks = [{**task(index, 2.0 * each, 25), "duration": 1000 * each} for index, each in seconds]
    ui.stages, ui.tasks = {41: wide}, {41: tasks}

    [found] = bench.stages()
    assert (found.run_seconds, found.seconds_median, found.seconds_max) == (1.5, median, longest)


@pytest.mark.parametrize(("lived", "seconds"), [(1500, 1.5), (4000, 3.0), (None, 3.0), (0, 3.0), (-60_000, 3.0)])
def test_a_lifetime_is_no_limit_where_it_is_unknown_or_the_clock_was_set_back(lived, seconds):
    assert ran_seconds(3000, lived) == seconds


@pytest.mark.parametrize("tasks", [4, 100])
def test_attempts_that_failed_are_told_apart_from_those_that_ended_well(ui, bench, tasks):
    error = "java.io.IOException: no route\n\tat org.apache.Frame.run(Frame.java:7)\nCaused by: gone"
    failed = task(2, 1.5, 30) | {"status": "FAILED", "duration": 1600, "executorId": "driver", "errorMessage": error}
    failed["launchTime"] = "2027-01-15T08:00:01.000GMT"
    failed["taskMetrics"] |= {"executorCpuTime": 500_000_000, "jvmGcTime": 40}
    ui.stages = {41: stage(41, tasks, numFailedTasks=1)}
    ui.tasks[41].append(failed)

    [found] = bench.stages()
    assert (found.failed_tasks, found.failed_seconds) == (1, 1.6)
    assert found.failure == "java.io.IOException: no route\nCaused by: gone"  # as exceptions are: without its stack
    assert (found.run_seconds, found.cpu_seconds, found.gc_seconds, found.records) == (1.5, 1.5, 0.06, 100)
    assert found.executors["driver"] == ExecutorShare(tasks, 1.5)


def test_it_asks_again_only_for_a_new_batch_and_after_the_interval(ui, bench):
    bench.collect()
    before = len(ui.asked)
    bench.collect()
    bench.run.last_batch = 6
    bench.collect()
    assert len(ui.asked) == before

    bench.now += 5
    ui.batch(6)
    assert [data["batch_id"] for data in bench.collect()] == [6]
    assert inspect.signature(TaskCollector).parameters["clock"].default is time.monotonic


def test_without_a_batch_or_an_interface_nothing_is_asked(ui, bench):
    bench.run.last_batch = None
    assert (bench.collect(), ui.asked, Bench(None).collect()) == ([], [], [])


def test_of_many_queries_each_has_its_turn_within_a_bounded_number_of_questions(ui):
    run_ids = [f"{n:08}-0000-4000-8000-000000000000" for n in range(60)]
    ui.executions = [execution(n, 5, [7], run_id=run_id) for n, run_id in enumerate(run_ids)]
    runs = [run_of(FakeSession(), run_id, query=run_id, last_batch=5) for run_id in run_ids]
    bench = Bench(ui.rest, interval=1000.0, runs=runs)
    read, most = set(), 0
    for _ in range(10):
        before = len(ui.asked)
        read |= {data["run_id"] for data in bench.collect()}
        most = max(most, len(ui.asked) - before)
        bench.now += 1

    assert read == set(run_ids)
    assert most <= MAX_QUESTIONS + 10, "what one batch takes may come on top"


OTHERS = "1" * 8


def test_the_newest_executions_are_found_beyond_the_first_page_and_after_eviction(ui, bench):
    ui.executions = [*(execution(number, 1, run_id=OTHERS) for number in range(950)), *ui.executions]
    assert [data["batch_id"] for data in bench.collect()] == [5]
    ui.batch(6)
    bench.later(6)
    assert [data["batch_id"] for data in bench.collect()] == [6]


def test_a_batch_with_more_executions_than_a_page_is_read_whole(ui, bench):
    told = {"submissionTime": "2027-01-15T08:00:00.500GMT", "duration": 2000, "errorMessage": "no"}
    others = [execution(number, 5) for number in range(1, 240)]
    ui.executions = [execution(0, 5) | told, *others, execution(240, 5, [7])]
    [data] = bench.collect()
    assert ([each["error"] for each in data["failed"]], len(data["stages"])) == (["no"], 1)


def test_a_page_begins_with_what_may_still_be_read(ui, bench):
    ui.executions = [*(execution(number, number, run_id=OTHERS) for number in range(60)), execution(60, 5, [7])]
    bench.collect()
    assert ui.pages.pop() == [*range(61)]

    ui.executions += [execution(61, 6, [7]), execution(62, 7, status="RUNNING"), execution(63, 8, [7])]
    for last_batch, page in ((6, [60, 61, 62, 63]), (8, [62, 63])):  # 60 shows where the page begins, 62 still runs
        bench.later(last_batch)
        bench.collect()
        assert ui.pages.pop() == page


@pytest.mark.parametrize("kept", [True, False], ids=["Spark keeps it", "Spark has forgotten it"])
def test_a_batch_that_runs_while_others_begin_hundreds_is_found_when_it_ends(ui, bench, kept):
    first, last = execution(0, 6, [7]), execution(1, 6, status="RUNNING")
    ui.executions = [first, last, *(execution(number, number, run_id=OTHERS) for number in range(2, 230))]
    bench.later(5)
    assert bench.collect() == []

    ui.executions += [execution(number, number, run_id=OTHERS) for number in range(230, 260)]
    ui.executions[:2] = [first, {**last, "status": "COMPLETED", "successJobIds": [8]}] if kept else []
    ui.jobs[8], ui.stages[9], ui.tasks[9] = [9], stage(9, 1), [task(0, 3.0, 130)]
    bench.later(6)
    [data] = bench.collect()
    assert (data["batch_id"], [each["stage_id"] for each in data["stages"]]) == (6, [9, 41] if kept else [41])
    assert data["whole"] is kept
    asked = len(ui.asked)
    bench.later(6)
    assert (bench.collect(), len(ui.asked)) == ([], asked)


@pytest.mark.parametrize("evicted", [1, 30, 61, 100])
def test_executions_that_spark_no_longer_keeps_hide_no_newer_ones(ui, bench, evicted):
    of_others = [execution(number, number, run_id=OTHERS) for number in range(101)]
    ui.executions = [*of_others[:60], execution(60, 5, [7])]
    bench.collect()

    every = [*ui.executions, *of_others[61:], execution(101, 6, [7])]
    ui.executions = every[evicted:]
    bench.later(6)
    assert [data["batch_id"] for data in bench.collect()] == [6]


def test_python_time_is_summed_and_no_more_asked_for_where_there_is_none(ui, bench):
    name = "time to run Python workers"
    ui.nodes = [
        {"metrics": [{"name": name, "value": "total (min, med)\n1.6 s (811 ms, 823 ms)"}]},
        {"metrics": [{"name": name, "value": "250 ms"}, {"name": "rows", "value": "5"}]},
    ]
    assert bench.collect()[0]["python_seconds"] == 1.85

    ui.nodes = []
    for batch in range(6, 12):
        ui.batch(batch)
        bench.later(batch)
        assert bench.collect()[0]["python_seconds"] is None
    assert sum(path.startswith("/sql/") for path in ui.asked) == 3


def test_a_batch_that_takes_far_longer_is_asked_for_python_again(ui, bench):
    told = []
    for number, seconds in enumerate((1.0, 1.2, 1.5, 4.0), 5):
        ui.batch(number)
        for each in ui.executions:
            each["duration"] = seconds * 500
        ui.nodes = [{"metrics": [{"name": "time to run Python workers", "value": "3.1 s"}]}] if seconds > 2 else []
        bench.later(number)
        told += [data["python_seconds"] for data in bench.collect()]

    assert told == [None, None, None, 3.1]
    assert sum(path.startswith("/sql/") for path in ui.asked) == 3


def test_an_interface_that_is_away_is_left_alone_for_longer_and_longer():
    bench = Bench(SparkRest("http://127.0.0.1:9", "app-1"))
    tried = []
    for _ in range(100):
        try:
            bench.collect()
        except OSError:
            tried.append(round(bench.now - T0))
        bench.now += 1

    assert tried == [0, 5, 15, 35, 65, 95]


def test_an_answer_that_is_no_json_counts_as_away(ui, bench):
    ui.broken = True
    with pytest.raises(ValueError, match="unexpected"):
        bench.collect()
    ui.broken = False
    assert bench.collect() == []
    bench.now += 5
    assert len(bench.collect()) == 1


def test_a_batch_that_still_runs_waits_for_its_turn():
    page = page_of(execution(1, 4, [6]), execution(2, 5, [7]), execution(3, 5, [8], status="RUNNING"))
    assert batches_to_read(page, {RUN: 9}, {})[RUN].batch_id == 4


def test_a_batch_between_two_of_its_writes_waits_for_its_progress(ui, bench):
    ui.jobs |= {8: [42], 9: [43]}
    ui.stages |= {42: stage(42, 4), 43: stage(43, 4)}
    ui.tasks |= {42: ui.tasks[41], 43: ui.tasks[41]}
    ui.executions += [execution(2, 6, [8])]  # the first of two writes; the second has not begun
    assert [data["batch_id"] for data in bench.collect()] == [5]

    ui.executions += [execution(3, 6, [9])]
    bench.later(6)
    [data] = bench.collect()
    assert (data["batch_id"], [each["stage_id"] for each in data["stages"]]) == (6, [42, 43])


def test_of_a_statement_that_failed_its_error_is_read_and_its_stages_are_not(ui, bench):
    ui.jobs[8], ui.stages[43], ui.tasks[43] = [43], stage(43, 4), ui.tasks[41]
    conflict = "ConcurrentAppendException: conflict\n\tat a.B.c(B:1)"
    told = {"submissionTime": "2027-01-15T08:00:00.500GMT", "duration": 2000, "errorMessage": conflict}
    part = {"submissionTime": "2027-01-15T08:00:01.500GMT"}
    ui.executions += [execution(2, 5, status="FAILED") | told, execution(3, 5, [8]) | part]
    [data] = bench.collect()

    assert [each["stage_id"] for each in data["stages"]] == [41]
    assert data["failed"] == [
        {"started": 1_800_000_000.5, "ended": 1_800_000_002.5, "error": "ConcurrentAppendException: conflict"}
    ]


def test_a_batch_whose_only_statement_failed_before_it_had_a_job_is_read(ui, bench):
    told = {"submissionTime": "2027-01-15T08:00:00.500GMT", "duration": 2000, "errorMessage": "refused"}
    ui.executions = [execution(0, 5, status="FAILED") | told]
    [data] = bench.collect()

    assert (data["batch_id"], data["stages"], [each["error"] for each in data["failed"]]) == (5, [], ["refused"])


def test_a_batch_that_ends_while_the_interface_answers_waits_for_the_next_look(ui, bench):
    ui.batch(6)
    answer = ui.answer

    def slow(target):
        bench.run.last_batch = 6
        return answer(target)

    ui.answer = slow
    assert bench.collect() == []


@cases(
    "milliseconds, read, batch",
    ("of two long ones the newer", [300, 2200, 300, 2100, 300], 0, 4),
    ("none since the last look", [300, 2200, 300, 2100, 300], 4, 5),
    ("a hiccup of a quick batch", [300, 900, 300], 0, 3),
    ("less than twice as long", [5000, 9000, 5000], 0, 3),
    ("nothing is said of their time", [None, None, None], 0, 3),
)
def test_a_batch_that_took_far_longer_is_read_in_place_of_the_newest(milliseconds, read, batch):
    numbered = enumerate(milliseconds, start=1)
    page = page_of(*({**execution(number, number, [number]), "duration": took} for number, took in numbered))
    assert batches_to_read(page, {RUN: 9}, {RUN: read})[RUN].batch_id == batch


OF_OLDER_SPARK = f"q<br/>id = ffc59b0f-896c-4c1d-9fe7-875fd598ee3a<br/>runId = {RUN}<br/>batch = 8"


@cases(
    "description, found",
    ("another job", "count at app.py:5", {}),
    ("none", "", {}),
    ("ids that are none", "id = x\nrunId = y\nbatch = z", {}),
    ("line break tags of an older Spark", OF_OLDER_SPARK, {RUN: 8}),
)
def test_the_batch_of_an_execution_is_read_from_its_description(description, found):
    page = page_of({**execution(1, 4, [6]), "description": description})
    assert {run: batch.batch_id for run, batch in batches_to_read(page, {RUN: 9}, {}).items()} == found


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0 ms", 0.0), ("total (min)\n1.5 s (1 s)", 1.5), ("2.0 m", 120.0), ("1.0 h (x)", 3600.0), ("", 0.0), ("x", 0.0)],
)
def test_amounts_of_time_are_read(text, seconds):
    assert parse_duration(text) == seconds
