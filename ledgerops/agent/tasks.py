"""How the tasks of a query's batch shared the work, as Spark knows it, in a thread of its own.

The way from a batch to its tasks: the list of SQL executions (whose descriptions name run and batch), their jobs, their
stages. Only one finished batch of each query is read at a time: the newest, or one since the last sample that took far
longer. Where long and short batches alternate, the newest may always be a short one, and nothing would be known about
those that do harm. While Spark does not answer, the collector pauses.
"""

import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from statistics import median
from typing import Any

import orjson

from ledgerops.agent.queue import EventQueue
from ledgerops.agent.spark_status import SparkStatus, SqlExecution, rest_instant
from ledgerops.common.masking import short_exception
from ledgerops.model.records import ExecutorShare, FailedStatement, StageSummary, TaskSummary
from ledgerops.model.statements import batch_of, failed_statements, is_lost
from ledgerops.runtime.runs import Run, Runs
from ledgerops.signals.skew import skew_score

PAGE_EXECUTIONS = 100  # executions asked for at once
MAX_PAGES = 25  # Spark keeps 1,000 executions by default
MAX_PASSED = 1_000  # executions before the page that are remembered, the newest
# stages of one batch that are read, the newest: of a long one, as with MERGE, more
MIN_STAGES, STAGES_A_SECOND, MAX_STAGES = 8, 5, 40
MAX_SINGLE_TASKS = 64  # up to this many tasks of a stage are read one by one, and those of a job with its stages
MAX_QUESTIONS = 100  # for batches in one sample: a driver of 500 queries has other things to do than to answer us
NO_BATCH = ("", -1)  # run and batch of an execution that no query ran
NEVER = (-1, -math.inf)  # batch and instant of a run that was not read yet
PAUSE_SECONDS = (5.0, 10.0, 20.0, 30.0)  # after the first, second ... call in a row that could read nothing
UNREADABLE = (OSError, ValueError, KeyError, TypeError, IndexError)
PYTHON = re.compile(r"time to run python workers", re.IGNORECASE)
DURATION = re.compile(r"([\d.,]+) (ms|s|m|h)\b")
UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
FAR_LONGER_RATIO = 2.0  # times the newest batch: one that took that long is read instead
FAR_LONGER_SECONDS = 1.0  # more; a hiccup of a quick batch means nothing
MAX_PYTHON_TRIES = 2  # batches without Python time after which only one that takes far longer is asked for it


@dataclass(frozen=True, slots=True)
class Execution:
    """The SQL executions of one batch."""

    batch_id: int
    statements: list[SqlExecution] = field(default_factory=list)

    @property
    def running(self) -> bool:
        """Whether one of them is not done."""
        return any(each.is_running for each in self.statements)

    @property
    def seconds(self) -> float:
        """That they took, together."""
        return sum(each.seconds for each in self.statements)

    @property
    def failed(self) -> tuple[FailedStatement, ...]:
        """Those that ended with an error, and not within another one."""
        return failed_statements(
            FailedStatement(each.started, each.started + each.seconds, short_exception(each.error))
            for each in self.statements
            if each.error and not each.is_running
        )

    @property
    def with_jobs(self) -> Sequence[SqlExecution]:
        """Those that ran jobs, without what belongs to one that failed."""
        failed = self.failed
        return [each for each in self.statements if each.jobs and not is_lost(each.started, failed)]


class TaskCollector:
    """`status` returns what Spark knows, None where it cannot be asked. A query is read every `interval` seconds."""

    def __init__(
        self, queue: EventQueue, runs: Runs, status: Callable[[], SparkStatus | None], interval: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._queue, self._runs, self._status = queue, runs, status
        self._interval, self._clock = interval, clock
        self._offset, self._first = 0, 0  # where the next page begins, and the id of the execution that was there
        self._passed: dict[int, SqlExecution] = {}  # before that page, of batches that are not read yet, by number
        self._latest_read: dict[str, tuple[int, float]] = {}  # run id -> batch, when
        self._no_python: dict[str, tuple[int, float]] = {}  # batches asked for in vain, seconds of the longest
        self._failures = 0
        self._paused_until = 0.0

    def collect(self) -> None:
        """Reads a finished batch of each query that is due: first of those read longest ago, and of these the ones that
        finished last. After MAX_QUESTIONS the others wait for the next call. Raises the last error of a Spark that does
        not answer properly, after all were tried. When none could be read, the next calls do nothing for a while."""
        now = self._clock()
        spark = self._status()
        due = {run.run_id: run for run in self._runs.recent() if self._due(run, now)}
        # noted before the question: of a batch that ends after it, the answer may have only a part
        finished = {run_id: run.last_batch for run_id, run in due.items() if run.last_batch is not None}
        if spark is None or not due or now < self._paused_until:
            return
        try:
            read_before = {run_id: batch for run_id, (batch, _) in self._latest_read.items()}
            self._look_back(spark, finished)
            page, every = self._pages(spark)
            batches = batches_to_read(every, finished, read_before)
            read, problem = self._read_batches(spark, batches, due, now)
        except UNREADABLE as error:
            read, problem = 0, error
        if problem is not None and not read:
            self._paused_until = now + PAUSE_SECONDS[min(self._failures, len(PAUSE_SECONDS) - 1)]
            self._failures += 1
            raise problem
        self._failures = 0
        active = {run.run_id for run in self._runs.recent()}
        self._latest_read = {run_id: seen for run_id, seen in self._latest_read.items() if run_id in active}
        self._no_python = {run_id: vain for run_id, vain in self._no_python.items() if run_id in active}
        self._pass_over(page, active)
        if problem is not None:
            raise problem

    def _read_batches(
        self, spark: SparkStatus, batches: Mapping[str, Execution], due: Mapping[str, Run], now: float
    ) -> tuple[int, Exception | None]:
        """Queues the tasks of batches, by run id. Returns how many could be read, and the last error."""
        problem: Exception | None = None
        read, asked_before = 0, spark.asked
        longest_ago = sorted(batches, key=lambda each: (self._latest_read.get(each, NEVER)[1], -due[each].last_seen))
        for run_id in longest_ago:
            if spark.asked - asked_before >= MAX_QUESTIONS:
                break
            self._latest_read[run_id] = (batches[run_id].batch_id, now)
            try:
                summary = self._read(spark, run_id, batches[run_id])
                read += 1
                if summary.stages or summary.failed:
                    self._queue.put("tasks", orjson.dumps(summary), due[run_id].query, due[run_id].session)
            except UNREADABLE as error:  # one batch's stages may be gone; the others are read all the same
                problem = error
                if isinstance(error, TimeoutError):
                    break
        return read, problem

    def _due(self, run: Run, now: float) -> bool:
        batch, at = self._latest_read.get(run.run_id, NEVER)
        return run.last_batch is not None and run.last_batch > batch and now - at >= self._interval

    def _pages(self, spark: SparkStatus) -> tuple[Sequence[SqlExecution], Sequence[SqlExecution]]:
        """The newest page, and all executions that may still be read. Spark counts from the oldest that it keeps, so
        the offset of one becomes smaller when older ones go."""
        page: Sequence[SqlExecution] = ()
        every = self._passed.copy()
        for _ in range(MAX_PAGES):
            page = spark.executions(self._offset, PAGE_EXECUTIONS)
            every |= {each.number: each for each in page}
            if self._offset and (not page or page[0].number > self._first):
                back = page[0].number - self._first if page else PAGE_EXECUTIONS // 2
                self._offset = max(0, self._offset - back)
            elif len(page) >= PAGE_EXECUTIONS:
                left = page[: PAGE_EXECUTIONS // 2]
                self._passed |= {each.number: each for each in left if batch_of(each.description) is not None}
                self._passed = dict(list(self._passed.items())[-MAX_PASSED:])
                self._begin_at(page, PAGE_EXECUTIONS // 2)
            else:
                break
        return page, sorted(every.values())

    def _look_back(self, spark: SparkStatus, finished: Mapping[str, int]) -> None:
        """Asks how those before the page ended whose batch is over, at most MAX_QUESTIONS. A batch may run while others
        begin hundreds."""
        asked_before = spark.asked
        for number, each in list(self._passed.items()):
            run_id, batch = batch_of(each.description) or NO_BATCH
            if not each.is_running or batch > finished.get(run_id, -1):
                continue
            if spark.asked - asked_before >= MAX_QUESTIONS:
                return
            self._passed[number] = each._replace(is_running=False, is_known=False)  # also where the answer is an error
            self._passed[number] = spark.execution(number) or self._passed[number]

    def _pass_over(self, page: Sequence[SqlExecution], active: Collection[str]) -> None:
        """The next page begins with what may still be read: each execution on it costs the driver some time."""
        read = {run_id: self._latest_read.get(run_id, NEVER)[0] for run_id in active}

        def is_left(execution: SqlExecution) -> bool:
            run_id, batch = batch_of(execution.description) or NO_BATCH
            return batch > read.get(run_id, math.inf)

        def is_done_with(execution: SqlExecution) -> bool:
            return not execution.is_running and not is_left(execution)

        self._passed = {number: each for number, each in self._passed.items() if is_left(each)}
        if page:
            done = sum(1 for _ in takewhile(is_done_with, page))
            self._begin_at(page, min(done, len(page) - 1))  # with the newest at least: it shows where the page begins

    def _begin_at(self, page: Sequence[SqlExecution], place: int) -> None:
        self._offset, self._first = self._offset + place, page[place].number

    def _read(self, spark: SparkStatus, run_id: str, found: Execution) -> TaskSummary:
        most, python = max(MIN_STAGES, min(MAX_STAGES, int(STAGES_A_SECOND * found.seconds))), None
        stages: dict[int, StageSummary] = {}
        with_jobs, failed = found.with_jobs, found.failed
        whole = _read_newest(spark, [job for each in with_jobs for job in each.jobs], most, stages)
        whole = whole and all(each.is_known for each in found.statements)
        tries, longest = self._no_python.get(run_id, (0, 0.0))
        if with_jobs and (tries < MAX_PYTHON_TRIES or _is_far_longer(found.seconds, longest)):
            python = sum(python_seconds(spark, each.number) for each in with_jobs[-2:]) or None
            if python is None:
                self._no_python[run_id] = tries + 1, max(longest, found.seconds)
            else:
                self._no_python.pop(run_id, None)
        read = tuple(stages[each] for each in sorted(stages))
        return TaskSummary(run_id, found.batch_id, read, python, whole, failed)


def _read_newest(spark: SparkStatus, jobs: Sequence[int], most: int, read: dict[int, StageSummary]) -> bool:
    """Reads at most so many stages, the newest first; False where there are more. A job names those that it skipped,
    too: how many ran is known, and of a plan that adapts itself only the newest of each job did."""
    for place, number in enumerate(sorted(jobs, reverse=True)):
        if max(place, len(read)) >= most:
            return False
        job = spark.job(number)
        if job is None:
            return False
        few_tasks, ran = job["numTasks"] <= MAX_SINGLE_TASKS, job["numCompletedStages"]
        for stage_id in sorted(job["stageIds"], reverse=True):
            if not ran:
                break
            if len(read) >= most:
                return False
            stage = read.get(stage_id) or read_stage(spark, stage_id, few_tasks)
            if stage is not None:
                read[stage_id] = stage
                ran -= 1
        if ran:
            return False  # Spark no longer keeps one
    return True


def batches_to_read(
    page: Iterable[SqlExecution], finished: Mapping[str, int], read: Mapping[str, int]
) -> dict[str, Execution]:
    """The batch of each run that is read next, by run id; runs without a new one are absent.

    `finished` names the runs and their last finished batch, `read` the last batch of each that was read. It is the
    newest that is done, or the longest since `read` when that took FAR_LONGER_RATIO times as long. A batch may write
    several times: when no execution of it is running, the next may be about to begin.
    """
    batches: dict[str, dict[int, Execution]] = {}
    for each in page:
        run_id, batch = batch_of(each.description) or NO_BATCH
        if read.get(run_id, -1) < batch <= finished.get(run_id, -1):
            batches.setdefault(run_id, {}).setdefault(batch, Execution(batch)).statements.append(each)
    chosen = {}
    for run_id, known in batches.items():
        over = (each for _, each in sorted(known.items()) if not each.running)
        done = [each for each in over if any(s.jobs or s.error for s in each.statements)]
        if done:
            longer = [each for each in done if _is_far_longer(each.seconds, done[-1].seconds)]
            chosen[run_id] = (longer or done)[-1]
    return chosen


def _is_far_longer(seconds: float, than: float) -> bool:
    return seconds >= max(FAR_LONGER_RATIO * than, than + FAR_LONGER_SECONDS)


def read_stage(spark: SparkStatus, stage_id: int, few_tasks: bool) -> StageSummary | None:
    """One stage; None when it was skipped, or is no longer kept. What a question costs the driver hardly depends on the
    answer. So the few tasks of a small job come with their stage. Of others those that failed do, and all apart, where
    the stage is not wide."""
    stage = spark.stage(stage_id, few_tasks)
    if stage is None or stage["status"] != "COMPLETE" or not stage["numCompleteTasks"]:
        return None
    tasks = (stage.get("tasks") or {}).values()
    failed = [task for task in tasks if task.get("status") == "FAILED"]
    if not few_tasks and 1 < stage["numTasks"] <= MAX_SINGLE_TASKS:
        tasks = spark.tasks(stage_id, stage["attemptId"], MAX_SINGLE_TASKS)
    done = [task for task in tasks if task.get("status") == "SUCCESS" and task.get("taskMetrics")]
    return parse_stage(stage, done if stage["numTasks"] > 1 else [], failed)


def parse_stage(
    stage: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]], failed: Sequence[Mapping[str, Any]] = ()
) -> StageSummary:
    """The summary of one stage attempt of `/stages/{id}`, of its successful tasks where they were read, and of its
    `failed` ones."""
    stage = _without(stage, failed) if failed else stage
    reads_shuffle = stage["shuffleReadRecords"] > 0
    shares = stage.get("executorSummary") or {}
    ran = ran_seconds(stage["executorRunTime"], sum(share["taskTime"] for share in shares.values()))
    seconds_median, seconds_max, records_median, records_max = _quantiles(stage, reads_shuffle, ran)
    seconds = [ran_seconds(task["taskMetrics"]["executorRunTime"], task.get("duration")) for task in tasks]
    records = [_records(task["taskMetrics"]) for task in tasks]
    if tasks:
        seconds_median, seconds_max = median(seconds), max(seconds)
        records_median, records_max = float(median(records)), float(max(records))
    slowest = max(tasks, key=lambda task: task["taskMetrics"]["executorRunTime"], default=None)
    newest = max(failed, key=lambda task: str(task.get("launchTime")), default=None)
    return StageSummary(
        stage_id=int(stage["stageId"]), name=str(stage.get("name", "")),
        tasks=int(stage["numTasks"]), failed_tasks=int(stage["numFailedTasks"]),
        started=rest_instant(stage.get("firstTaskLaunchedTime") or stage.get("submissionTime")),
        ended=rest_instant(stage.get("completionTime")),
        run_seconds=ran, cpu_seconds=stage["executorCpuTime"] / 1e9, gc_seconds=stage["jvmGcTime"] / 1000,
        seconds_median=seconds_median, seconds_max=seconds_max,
        records=_records_of(stage), records_median=records_median, records_max=records_max,
        reads_shuffle=reads_shuffle, input_bytes=int(stage["inputBytes"]),
        shuffle_read_bytes=int(stage["shuffleReadBytes"]), shuffle_write_bytes=int(stage["shuffleWriteBytes"]),
        spill_bytes=int(stage["memoryBytesSpilled"] + stage["diskBytesSpilled"]),
        executors={
            str(name): ExecutorShare(int(each["succeededTasks"]), each["taskTime"] / 1000)
            for name, each in shares.items()
        },
        records_score=skew_score(records) if len(tasks) == stage["numTasks"] > 1 else None,
        seconds_score=skew_score(seconds) if len(tasks) == stage["numTasks"] > 1 else None,
        slowest_task=int(slowest.get("partitionId", slowest["index"])) if slowest else None,
        shuffle_seconds=stage.get("shuffleFetchWaitTime", 0) / 1000 + stage.get("shuffleWriteTime", 0) / 1e9,
        failed_seconds=sum(max(0, task.get("duration") or 0) for task in failed) / 1000,  # a clock may be set back
        failure=short_exception(str(newest.get("errorMessage") or "")) if newest else None,
        submitted=rest_instant(stage.get("submissionTime")),
        slowest_wrote=_written(slowest["taskMetrics"]) if slowest else None,
    )  # fmt: skip


def _without(stage: Mapping[str, Any], failed: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """A stage without what attempts that failed did: Spark adds that to its totals."""
    whole = dict(stage)
    shares = {name: dict(share) for name, share in (stage.get("executorSummary") or {}).items()}
    for task in failed:
        metrics, share = task.get("taskMetrics"), shares.get(str(task.get("executorId")), {"taskTime": 0})
        share["taskTime"] = max(0, share["taskTime"] - (task.get("duration") or 0))
        if not metrics:
            continue
        lost = {
            "inputRecords": metrics["inputMetrics"]["recordsRead"],
            "shuffleReadRecords": metrics["shuffleReadMetrics"]["recordsRead"],
        } | {name: metrics.get(name, 0) for name in ("executorRunTime", "executorCpuTime", "jvmGcTime")}
        whole |= {name: max(0, whole.get(name, 0) - amount) for name, amount in lost.items()}
    return whole | {"executorSummary": shares}


def _quantiles(stage: Mapping[str, Any], reads_shuffle: bool, ran: float) -> tuple[float, float, float, float]:
    """(median, max) of the tasks' seconds and of their records; the stage's own mean where there is one task only, of
    the `ran` seconds of all its tasks."""
    spread = stage.get("taskMetricsDistributions")
    if not spread:
        count = max(1, stage["numCompleteTasks"])
        seconds = ran / count
        records = _records_of(stage) / count
        return seconds, seconds, records, records
    records = spread["shuffleReadMetrics"]["readRecords"] if reads_shuffle else spread["inputMetrics"]["recordsRead"]
    times, lived = spread["executorRunTime"], spread.get("duration") or spread["executorRunTime"]
    return ran_seconds(times[0], lived[0]), ran_seconds(times[-1], lived[-1]), float(records[0]), float(records[-1])


def ran_seconds(milliseconds: float, lifetime: float | None) -> float:
    """Seconds that tasks ran, which are no more than they lived: where `spark.task.cpus` reserves several cores for
    each, Spark multiplies the time by them (Executor.scala, `taskDescription.cpus`). A lifetime that is not known, or
    not positive because the clock was set back, is no limit."""
    return min(milliseconds, lifetime if lifetime and lifetime > 0 else milliseconds) / 1000


def _records_of(totals: Mapping[str, Any]) -> int:
    return int(totals["inputRecords"] + totals["shuffleReadRecords"])


def _records(metrics: Mapping[str, Any]) -> int:
    return int(metrics["inputMetrics"]["recordsRead"] + metrics["shuffleReadMetrics"]["recordsRead"])


def _written(metrics: Mapping[str, Any]) -> int:
    return int(metrics["outputMetrics"]["recordsWritten"] + metrics["shuffleWriteMetrics"]["recordsWritten"])


def python_seconds(spark: SparkStatus, execution: int) -> float:
    """Time in Python workers over all nodes of one SQL execution; 0 where Spark reports none."""
    return sum(parse_duration(value) for name, value in spark.metrics(execution) if PYTHON.search(name))


def parse_duration(text: str) -> float:
    """Seconds from a SQL metric's text: `0 ms`, or a line of words and then `1.6 s (811 ms, 823 ms, ...)`."""
    found = DURATION.match(text.splitlines()[-1]) if text else None
    return float(found[1].replace(",", "")) * UNIT_SECONDS[found[2]] if found else 0.0
