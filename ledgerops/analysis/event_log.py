"""A Spark event log -> observations: what any application wrote while `spark.eventLog.enabled` was on.

A log is one file or a rolling folder (`eventlog_v2_*` with `events_1_*`, `events_2_*` ...), plain or zstd, finished or
`.inprogress`. Progress comes in Spark's second dialect, see `ledgerops.model.spark_progress`. Tasks come one by
one and are summed up here, by batch and stage, as `agent.tasks` does live; so are those of a batch that takes long, as
`agent.watchdog` reports it. The trigger interval is not in the log.
"""

import math
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import orjson

from ledgerops.agent.host import MAX_HOST_LENGTH, MAX_REMOVED_EXECUTORS, removal_reason
from ledgerops.agent.plan_text import output_mode, parse_watermarks, read_physical
from ledgerops.analysis.event_log_files import check_codec, log_files
from ledgerops.analysis.stage_tasks import StageTasks
from ledgerops.common.bounded_lines import Head, numbered_lines
from ledgerops.common.masking import short_exception
from ledgerops.errors import UserError
from ledgerops.model.delta_log import whole_number
from ledgerops.model.records import (
    Executor,
    FailedStatement,
    Host,
    Observation,
    ObservationKind,
    Plan,
    RemovedExecutor,
    StageSummary,
    TaskSummary,
    unread,
)
from ledgerops.model.sources.delta import has_delta
from ledgerops.model.spark_progress import parse_instant
from ledgerops.model.state_settings import state_settings
from ledgerops.model.statements import batch_of, failed_statements, is_lost

NAME = re.compile(rb'\{"Event":"(?:[\w.]+\.)?([\w$]+)"')
LISTENER = "StreamingQueryListener$"
SAMPLE_SECONDS = 2.0  # between two looks at the slots, while tasks of jobs run that belong to no query
LONG_SECONDS = 10.0  # of a batch, after which it is reported while it runs
AGAIN_SECONDS = 5.0  # between two such reports
MAX_PLANS = 4  # executions of a run whose plan is read: the first batch may lack what later ones have
WANTED = {
    f"SparkListener{name}"
    for name in (
        "LogStart", "ApplicationStart", "ApplicationEnd", "EnvironmentUpdate", "BlockManagerAdded", "ExecutorAdded",
        "ExecutorRemoved", "JobStart", "TaskStart", "TaskEnd", "StageCompleted", "SQLExecutionStart",
        "SQLExecutionEnd",
    )
} | {f"{LISTENER}Query{name}Event" for name in ("Started", "Progress", "Idle", "Terminated")}  # fmt: skip


def read(path: Path) -> Iterator[Observation]:
    """All observations of a log. Raises UserError that names file and line when it cannot be read."""
    log = Log()
    for part in log_files(path):
        yield from log.read(part)
    yield from log.unfinished()


@dataclass(slots=True)
class Work:
    """The newest batch of a run that began a job."""

    batch_id: int
    since: float  # when its first job began
    due: float  # when it is reported as running; infinity once it has ended
    jobs: int = 0
    done: int = 0  # tasks that ended well
    running: Counter[int] = field(default_factory=Counter)  # tasks, by stage


class Log:
    """What one application has reported so far, as far as later events need it."""

    def __init__(self) -> None:
        self._now = 0.0
        self._runs: set[str] = set()  # of queries
        self._run_of: dict[str, str] = {}  # query id -> its newest run
        self._names: dict[str, str] = {}  # run id -> query, of those that have a name
        self._batches: dict[int, tuple[str, int]] = {}  # stage id -> run id, batch id
        self._active: dict[str, str] = {}  # run id -> query id, of runs whose end was not reported
        self._begun: dict[str, Work] = {}  # by run id
        self._due: list[tuple[float, str]] = []  # a heap of when each of these may be due, and its run id
        self._tasks: dict[tuple[int, int], StageTasks] = {}  # by stage id and attempt
        self._stages: dict[tuple[str, int], list[StageSummary]] = {}
        self._python: dict[tuple[str, int], float] = {}
        self._statements: dict[int, tuple[str, int, float]] = {}  # that run: run id, batch id, when they began
        self._failed: dict[tuple[str, int], list[FailedStatement]] = {}
        self._plans: dict[str, tuple[int, Plan | None]] = {}
        self._settings: dict[str, Any] = {}
        self._properties: Mapping[str, Any] = {}  # of Spark, as the application set them at its start
        self._task_cpus = 1  # cores that Spark reserves for each task
        self._application_ended: float | None = None
        self._executors: dict[str, int] = {}  # id -> cores
        self._busy: Counter[str] = Counter()  # tasks that run, by executor
        self._memory: dict[str, int] = {}  # id -> bytes of its heap for storage and execution
        self._changed = 0.0  # when they last changed, in milliseconds
        self._hosts: dict[str, str] = {}  # the same executors' machines
        self._removed: deque[RemovedExecutor] = deque(maxlen=MAX_REMOVED_EXECUTORS)

    def read(self, path: Path) -> Iterator[Observation]:
        """The observations in one file of the log. Raises UserError where it does not begin as one."""
        check_codec(path)
        for number, line in numbered_lines(path, NAME.match):
            name = NAME.match(line)
            if name is not None and name[1].decode() not in WANTED:
                continue
            if isinstance(line, Head):
                yield unread(self._now)
                continue
            try:
                event = orjson.loads(line)
            except ValueError:
                if number == 1:
                    raise UserError(f"cannot read {path}:1: not a line of an event log") from None
                if line.endswith(b"\n"):  # else torn: it is still written
                    yield unread(self._now)
                continue
            if isinstance(event, dict) and isinstance(event.get("Event"), str):
                yield from self._take(event["Event"].rpartition(".")[2], event)

    def _take(self, name: str, event: Mapping[str, Any]) -> Iterator[Observation]:
        try:
            match name:
                case "SparkListenerApplicationStart":
                    self._settings |= {"app_id": _text(event, "App ID"), "app_name": _text(event, "App Name")}
                case "SparkListenerApplicationEnd":
                    yield from self._running()  # as it was before the end
                    self._application_ended = event["Timestamp"] / 1000
                    self._now = max(self._now, self._application_ended)
                case "SparkListenerLogStart":
                    self._settings["spark_version"] = _text(event, "Spark Version")
                case "SparkListenerEnvironmentUpdate":
                    self._properties = _object(event, "Spark Properties")
                    self._task_cpus = max(1, int(self._properties.get("spark.task.cpus", 1)))
                    if self._task_cpus > 1 and self._executors:  # that of local mode comes before the settings
                        yield from self._host(self._changed + 1)
                case "SparkListenerExecutorAdded":
                    executor, info = str(event["Executor ID"]), _object(event, "Executor Info")
                    self._executors[executor] = int(info["Total Cores"])
                    if isinstance(host := info.get("Host"), str) and host:
                        self._hosts[executor] = host[:MAX_HOST_LENGTH]
                    yield from self._host(event["Timestamp"])
                case "SparkListenerBlockManagerAdded":
                    executor = str(_object(event, "Block Manager ID")["Executor ID"])
                    self._memory[executor] = int(event.get("Maximum Onheap Memory") or event["Maximum Memory"])
                    if executor in self._executors:
                        yield from self._host(max(self._changed, event["Timestamp"]))
                case "SparkListenerExecutorRemoved":
                    self._removed.append(self._removal(event))
                    yield from self._host(event["Timestamp"])
                case "SparkListenerJobStart":
                    yield from self._long(event.get("Submission Time", 0) / 1000)
                    self._job(event)
                case "SparkListenerTaskStart":
                    self._busy[str(_object(event, "Task Info")["Executor ID"])] += 1
                    at, due = event["Task Info"]["Launch Time"], self._changed + 1000 * SAMPLE_SECONDS
                    yield from self._long(at / 1000)
                    if work := self._work(event["Stage ID"]):
                        work.running[event["Stage ID"]] += 1
                    if self._active and event["Stage ID"] not in self._batches and at >= due:
                        yield from self._host(max(at, 1000 * self._now))
                case "SparkListenerTaskEnd":
                    info = _object(event, "Task Info")
                    executor = str(info["Executor ID"])
                    if self._busy[executor] > 0:  # its begin may not be in the log
                        self._busy[executor] -= 1
                    yield from self._long(info["Finish Time"] / 1000)
                    key = int(event["Stage ID"]), int(event["Stage Attempt ID"])
                    if work := self._work(key[0]):
                        work.running[key[0]] -= work.running[key[0]] > 0  # its begin may not be in the log
                        work.done += not (info["Failed"] or info.get("Killed"))
                    if key[0] in self._batches:
                        self._tasks.setdefault(key, StageTasks()).add(event)
                case "SparkListenerStageCompleted":
                    self._stage(_object(event, "Stage Info"))
                case "SparkListenerSQLExecutionStart":
                    if found := batch_of(str(event.get("description"))):
                        self._statements[event["executionId"]] = *found, event["time"] / 1000
                    yield from self._plan(event)
                case "SparkListenerSQLExecutionEnd":
                    self._statement(event)
                case _ if name.startswith(LISTENER):
                    yield from self._streaming(name.removeprefix(LISTENER), event)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            return  # an event of a version that writes it differently is skipped; the others are read

    def _streaming(self, name: str, event: Mapping[str, Any]) -> Iterator[Observation]:
        run_id = str(event.get("runId"))
        match name:
            case "QueryStartedEvent":
                self._is_on(run_id, event)
                yield self._seen("started", parse_instant(event.get("timestamp")), run_id, event)
            case "QueryIdleEvent":
                yield self._seen("idle", parse_instant(event.get("timestamp")), run_id, event)
            case "QueryTerminatedEvent":
                exception = _text(event, "exception")
                data = event if exception is None else {**event, "exception": short_exception(exception)}
                self._active.pop(run_id, None)
                yield from self._unfinished(run_id)
                yield self._seen("terminated", None, run_id, data)
                self._forget(run_id)
            case "QueryProgressEvent":
                yield from self._progress(_object(event, "progress"))

    def _is_on(self, run_id: str, told: Mapping[str, Any]) -> None:
        """Notes a run by its start or a batch: the part of the log with its start may be gone."""
        self._runs.add(run_id)
        self._active[run_id] = str(told.get("id"))
        self._run_of[str(told.get("id"))] = run_id
        if (query := _text(told, "name")) is not None:
            self._names[run_id] = query

    def _progress(self, progress: Mapping[str, Any]) -> Iterator[Observation]:
        run_id = str(progress["runId"])
        self._is_on(run_id, progress)
        began = parse_instant(progress.get("timestamp"))
        ended = began + progress.get("batchDuration", 0) / 1000 if began is not None else None
        yield from self._long(ended or 0.0)
        yield self._seen("progress", ended, run_id, progress)
        key = run_id, int(progress["batchId"])
        if (work := self._begun.get(run_id)) and work.batch_id <= key[1]:
            work.due = math.inf
        failed = failed_statements(self._failed.pop(key, ()))
        stages = tuple(each for each in self._stages.pop(key, ()) if not is_lost(each.submitted, failed))
        if stages or failed:
            python = self._python.pop(key, None)
            yield self._seen("tasks", None, run_id, _plain_data(TaskSummary(*key, stages, python, True, failed)))
        self._forget(*key)

    def _forget(self, run_id: str, batch_id: float = math.inf) -> None:
        """Drops what is held for this batch and those before it: nothing more is reported of them."""
        over = {batch for batch in (*self._batches.values(), *self._stages, *self._failed) if batch[0] == run_id}
        over = {batch for batch in over if batch[1] <= batch_id}
        for batch in over:
            for known in (self._stages, self._python, self._failed):
                known.pop(batch, None)
        self._batches = {stage: batch for stage, batch in self._batches.items() if batch not in over}
        self._tasks = {attempt: ends for attempt, ends in self._tasks.items() if attempt[0] in self._batches}

    def _seen(self, kind: ObservationKind, at: float | None, run_id: str, data: Mapping[str, Any]) -> Observation:
        """Events without a time of their own happened after all that came before them."""
        self._now = max(self._now, at or 0.0)
        return Observation(self._now if at is None else at, kind, self._names.get(run_id), data)

    def unfinished(self) -> Iterator[Observation]:
        """The batches that are running where the log ends, of runs whose end it does not report; and the end of those
        that the application took with it. Spark reports none when it is stopped by a signal, and one that an exception
        ended after that of the application."""
        yield from self._running()
        for run_id, query_id in self._active.items() if self._application_ended is not None else ():
            data = {"id": query_id, "runId": run_id, "exception": None, "with_application": True}
            yield self._seen("terminated", self._application_ended, run_id, data)

    def _running(self) -> Iterator[Observation]:
        for run_id in list(self._begun):
            yield from self._unfinished(run_id)

    def _unfinished(self, run_id: str) -> Iterator[Observation]:
        work = self._begun.pop(run_id, None)
        if work is not None and work.due < math.inf and run_id in self._runs:
            yield self._report(run_id, work, self._now)

    def _work(self, stage_id: int) -> Work | None:
        """The newest batch of a run, if the stage is one of its."""
        run_id, batch = self._batches.get(stage_id, ("", -1))
        work = self._begun.get(run_id)
        return work if work is not None and work.batch_id == batch else None

    def _long(self, now: float) -> Sequence[Observation]:
        """The batches that have run for long before this instant, as they were when they were due."""
        late = []
        while self._due and self._due[0][0] <= now:
            late.append(heappop(self._due))
        found: list[Observation] = []
        for due, run_id in late:
            work = self._begun.get(run_id)
            if work is not None and work.due == due and run_id in self._runs:  # else it has ended, or is no query
                found.append(self._report(run_id, work, due))
                work.due = now + AGAIN_SECONDS - (now - work.since) % AGAIN_SECONDS
                heappush(self._due, (work.due, run_id))
        return found

    def _report(self, run_id: str, work: Work, at: float) -> Observation:
        running = work.running.total()
        data = {"run_id": run_id, "since": work.since, "message": "", "jobs": work.jobs}
        data |= {"tasks": work.done + running, "tasks_done": work.done, "tasks_running": running}
        return self._seen("batch_running", at, run_id, data)

    def _job(self, event: Mapping[str, Any]) -> None:
        settings = _object(event, "Properties")
        run_id, batch = settings.get("spark.jobGroup.id"), settings.get("streaming.sql.batchId")
        if run_id not in self._runs:  # a function of `foreachBatch` may give its jobs a group of its own
            run_id = self._run_of.get(str(settings.get("sql.streaming.queryId")), run_id)
        if isinstance(run_id, str) and isinstance(batch, str) and batch.isdecimal():
            work = self._begun.get(run_id)
            if work is None or work.batch_id < int(batch):
                self._now = max(self._now, event.get("Submission Time", 0) / 1000)
                work = self._begun[run_id] = Work(int(batch), self._now, self._now + LONG_SECONDS)
                heappush(self._due, (work.due, run_id))
            work.jobs += work.batch_id == int(batch)
            for stage_id in event["Stage IDs"]:
                self._batches[int(stage_id)] = run_id, int(batch)

    def _stage(self, info: Mapping[str, Any]) -> None:
        key = int(info["Stage ID"]), int(info["Stage Attempt ID"])
        tasks = self._tasks.pop(key, None)
        batch = self._batches.get(key[0])
        if info.get("Completion Time"):
            self._now = max(self._now, info["Completion Time"] / 1000)
        if batch is None or info.get("Failure Reason"):
            return  # a stage that failed may be run again
        if work := self._work(key[0]):
            work.running.pop(key[0], None)  # of a second copy of a task the end comes later
        summary = tasks.summary(info) if tasks is not None else None
        if tasks is not None and summary is not None:
            self._stages.setdefault(batch, []).append(summary)
            if tasks.python_seconds:
                self._python[batch] = self._python.get(batch, 0.0) + tasks.python_seconds

    def _statement(self, event: Mapping[str, Any]) -> None:
        run_id, batch, began = self._statements.pop(event["executionId"], (None, -1, 0.0))
        ended = event["time"] / 1000
        self._now = max(self._now, ended)
        if run_id is not None and event.get("errorMessage"):
            failed = FailedStatement(began, ended, short_exception(event["errorMessage"]))
            self._failed.setdefault((run_id, batch), []).append(failed)

    def _plan(self, event: Mapping[str, Any]) -> Iterator[Observation]:
        run_id = event.get("jobGroupId") or event.get("jobGroup")
        if not isinstance(run_id, str):
            found = re.search(r"runId = ([0-9a-f-]{36})", str(event.get("description")))
            run_id = found[1] if found else ""
        if run_id not in self._runs:
            return
        reads, known = self._plans.get(run_id, (0, None))
        if reads >= MAX_PLANS:
            return
        text = "\n".join(_nodes(_object(event, "sparkPlanInfo")))
        properties = {**self._properties, **(event.get("modifiedConfigs") or {})}  # the latter of the query's session
        plan = Plan(
            run_id, output_mode=output_mode(text), watermarks=parse_watermarks(text), **read_physical(text),
            shuffle_partitions=whole_number(properties.get("spark.sql.shuffle.partitions")),
            state_settings=state_settings(properties.get), delta=has_delta(properties.get),
            **{name: value for name, value in self._settings.items() if value is not None},
        )  # fmt: skip
        # foreachBatch has statements of its own, whose keys a stateless query may have: they hold no state
        news = known is None or plan.stateful or (bool(plan.keys) and not known.stateful)
        self._plans[run_id] = reads + 1, plan if news else known
        if news and plan != known:
            yield self._seen("plan", event["time"] / 1000, run_id, _plain_data(plan))

    def _removal(self, event: Mapping[str, Any]) -> RemovedExecutor:
        executor = str(event["Executor ID"])
        host = self._hosts.pop(executor, None)
        self._busy.pop(executor, None)
        return RemovedExecutor(
            executor, event["Timestamp"] / 1000, reason=removal_reason(event.get("Removed Reason"), host),
            cores=self._executors.pop(executor, 0), host=host,
        )  # fmt: skip

    def _host(self, milliseconds: float) -> Iterator[Observation]:
        """The executors' slots and memory: they decide what skew costs, and when state fills the heap."""
        self._changed = milliseconds
        executors = tuple(
            Executor(
                name, True, cores // self._task_cpus, self._busy[name], 0, 0, 0.0, 0.0, 0, self._memory.get(name, 0)
            )
            for name, cores in self._executors.items()
        )
        host = Host(milliseconds / 1000, None, None, None, None, None, None, (), executors, tuple(self._removed))
        data = {name: value for name, value in _plain_data(host).items() if name != "at"}
        yield Observation(milliseconds / 1000, "host", None, data)


def _nodes(plan: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a physical plan, from its tree, whatever its depth."""
    nodes = [plan]
    while nodes:
        node = nodes.pop()
        yield str(node.get("simpleString", ""))
        nodes += reversed(node.get("children", ()))


def _plain_data(record: TaskSummary | Plan | Host) -> dict[str, Any]:
    data: dict[str, Any] = orjson.loads(orjson.dumps(record))
    return data


def _object(event: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = event[key]
    if not isinstance(value, Mapping):
        raise ValueError(key)
    return value


def _text(event: Mapping[str, Any], key: str) -> str | None:
    value = event.get(key)
    return value if isinstance(value, str) else None
