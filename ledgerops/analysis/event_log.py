"""A Spark event log -> observations: what any application wrote while `spark.eventLog.enabled` was on.

A log is one file or a rolling folder (`eventlog_v2_*` with `events_1_*`, `events_2_*` ...), plain or zstd, finished or
`.inprogress`. Progress comes in Spark's second dialect, see `ledgerops.model.spark_progress`. Tasks come one by
one and are summed up here, by batch and stage, as the REST collector does live. The trigger interval is not in the log.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import IO, Any

import orjson

from ledgerops.agent.plan import STATEFUL, parse_keys, parse_watermarks
from ledgerops.errors import UserError
from ledgerops.model.records import (
    Executor,
    ExecutorShare,
    Host,
    Kind,
    Observation,
    Plan,
    Process,
    StageSummary,
    TaskSummary,
)
from ledgerops.model.spark_progress import parse_instant
from ledgerops.signals.skew import skew_score

ZSTD = b"\x28\xb5\x2f\xfd"
OTHER_CODECS = (".lz4", ".lzf", ".snappy")
ROLLING = "eventlog_v2_"
PART = re.compile(r"events_(\d+)_.+")
NAME = re.compile(rb'\{"Event":"(?:[\w.]+\.)?([\w$]+)"')
LISTENER = "StreamingQueryListener$"
PYTHON = re.compile(r"time to run python workers", re.IGNORECASE)
PLANS = 4  # executions of a run whose plan is read: the first batch may still lack what later ones have
WANTED = {
    "SparkListenerLogStart",
    "SparkListenerApplicationStart",
    "SparkListenerEnvironmentUpdate",
    "SparkListenerExecutorAdded",
    "SparkListenerExecutorRemoved",
    "SparkListenerJobStart",
    "SparkListenerTaskEnd",
    "SparkListenerStageCompleted",
    "SparkListenerSQLExecutionStart",
    f"{LISTENER}QueryStartedEvent",
    f"{LISTENER}QueryProgressEvent",
    f"{LISTENER}QueryIdleEvent",
    f"{LISTENER}QueryTerminatedEvent",
}


def is_event_log(path: Path) -> bool:
    """Whether the path is an event log, or a folder that holds some."""
    if path.is_dir():
        return bool(_parts(path)) or bool(_logs(path))
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError:
        return False
    return head.startswith((ZSTD, b'{"Event":')) or path.name.removesuffix(".inprogress").endswith(OTHER_CODECS)


def read(path: Path) -> Iterator[Observation]:
    """All observations of a log. Raises UserError that names file and line when it cannot be read."""
    log = Log()
    for part in _files(path):
        yield from log.read(part)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    parts = _parts(path)
    if parts:
        return parts
    logs = _logs(path)
    if len(logs) > 1:
        raise UserError(f"{path} holds {len(logs)} event logs; name one of them, the newest is {logs[-1]}")
    return _files(logs[0])


def _parts(folder: Path) -> list[Path]:
    """The files of a rolling log in order; a compacted one stands for all before it."""
    found = sorted(
        (int(m[1]), "compact" in each.name, each) for each in folder.iterdir() if (m := PART.match(each.name))
    )
    compact = max((index for index, (_, is_compact, _) in enumerate(found) if is_compact), default=0)
    return [each for _, _, each in found[compact:]]


def _logs(folder: Path) -> list[Path]:
    """Event logs in a folder, oldest first."""
    found = [
        each
        for each in folder.iterdir()
        if (each.is_dir() and each.name.startswith(ROLLING)) or (each.is_file() and _looks_like_log(each))
    ]
    return sorted(found, key=lambda each: each.stat().st_mtime)


def _looks_like_log(path: Path) -> bool:
    return not path.name.endswith((".jsonl", ".jsonl.zst")) and not path.name.startswith(".") and is_event_log(path)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(0)
        if head == ZSTD:
            yield from _unpacked(file, path)
            return
        if path.name.removesuffix(".inprogress").endswith(OTHER_CODECS):
            codec = path.name.removesuffix(".inprogress").rpartition(".")[2]
            raise UserError(
                f"cannot read {path}: compressed with {codec}; set spark.eventLog.compression.codec to zstd"
            )
        yield from _plain(file)


def _unpacked(file: IO[bytes], path: Path) -> Iterator[bytes]:
    import zstandard  # an optional dependency: logs that are not compressed are read without it

    try:
        # a log that is still written ends in the middle of a frame: what is there is read
        with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as plain:
            yield from io.BufferedReader(plain)
    except zstandard.ZstdError as error:
        raise UserError(f"cannot read {path}: {str(error).lower()}") from None


def _plain(file: IO[bytes]) -> Iterator[bytes]:
    yield from file


class Log:
    """What one application has told so far, as far as later events need it."""

    def __init__(self) -> None:
        self._now = 0.0
        self._names: dict[str, str] = {}  # run id -> query
        self._batches: dict[int, tuple[str, int]] = {}  # stage id -> run id, batch id
        self._tasks: dict[tuple[int, int], list[Mapping[str, Any]]] = {}  # stage id, attempt -> task ends
        self._stages: dict[tuple[str, int], list[StageSummary]] = {}
        self._python: dict[tuple[str, int], float] = {}
        self._plans: dict[str, tuple[int, Plan | None]] = {}
        self._settings: dict[str, Any] = {}
        self._executors: dict[str, int] = {}  # id -> cores

    def read(self, path: Path) -> Iterator[Observation]:
        number, bad = 0, None
        try:
            for number, line in enumerate(_lines(path), 1):
                if bad is not None:
                    raise UserError(f"cannot read {path}:{bad}: not a line of an event log")
                name = NAME.match(line)
                if name is not None and name[1].decode() not in WANTED:
                    continue
                if not line.strip():
                    continue
                try:
                    event = orjson.loads(line)
                except ValueError:
                    bad = number  # the last line of a log that is still written may be torn
                    continue
                if isinstance(event, dict) and isinstance(event.get("Event"), str):
                    yield from self._take(event["Event"].rpartition(".")[2], event)
        except OSError as error:
            raise UserError(f"cannot read {path}: {str(error).lower()}") from None

    def _take(self, name: str, event: Mapping[str, Any]) -> Iterator[Observation]:
        try:
            match name:
                case "SparkListenerApplicationStart":
                    self._settings |= {"app_id": _text(event, "App ID"), "app_name": _text(event, "App Name")}
                case "SparkListenerLogStart":
                    self._settings["spark_version"] = _text(event, "Spark Version")
                case "SparkListenerEnvironmentUpdate":
                    partitions = _object(event, "Spark Properties").get("spark.sql.shuffle.partitions", "")
                    self._settings["shuffle_partitions"] = int(partitions) if partitions.isdecimal() else None
                case "SparkListenerExecutorAdded":
                    self._executors[str(event["Executor ID"])] = int(_object(event, "Executor Info")["Total Cores"])
                    yield from self._host(event["Timestamp"])
                case "SparkListenerExecutorRemoved":
                    self._executors.pop(str(event["Executor ID"]), None)
                    yield from self._host(event["Timestamp"])
                case "SparkListenerJobStart":
                    self._job(event)
                case "SparkListenerTaskEnd":
                    key = int(event["Stage ID"]), int(event["Stage Attempt ID"])
                    if key[0] in self._batches:
                        self._tasks.setdefault(key, []).append(event)
                case "SparkListenerStageCompleted":
                    self._stage(_object(event, "Stage Info"))
                case "SparkListenerSQLExecutionStart":
                    yield from self._plan(event)
                case _ if name.startswith(LISTENER):
                    yield from self._streaming(name.removeprefix(LISTENER), event)
        except (KeyError, TypeError, ValueError, AttributeError):
            return  # an event of a version that writes it differently says nothing; the others still do

    def _streaming(self, name: str, event: Mapping[str, Any]) -> Iterator[Observation]:
        run_id = str(event.get("runId"))
        match name:
            case "QueryStartedEvent":
                query = _text(event, "name")
                if query is not None:
                    self._names[run_id] = query
                yield self._seen("started", parse_instant(event.get("timestamp")), run_id, event)
            case "QueryIdleEvent":
                yield self._seen("idle", parse_instant(event.get("timestamp")), run_id, event)
            case "QueryTerminatedEvent":
                yield self._seen("terminated", None, run_id, event)
                self._forget(run_id)
            case "QueryProgressEvent":
                yield from self._progress(_object(event, "progress"))

    def _progress(self, progress: Mapping[str, Any]) -> Iterator[Observation]:
        run_id = str(progress["runId"])
        began = parse_instant(progress.get("timestamp"))
        ended = began + progress.get("batchDuration", 0) / 1000 if began is not None else None
        if isinstance(progress.get("name"), str):
            self._names[run_id] = progress["name"]
        yield self._seen("progress", ended, run_id, progress)
        key = run_id, int(progress["batchId"])
        stages = self._stages.pop(key, None)
        if stages:
            python = self._python.pop(key, None)
            yield self._seen("tasks", None, run_id, _plain_data(TaskSummary(*key, tuple(stages), python)))
        self._forget(*key)

    def _forget(self, run_id: str, batch_id: float = math.inf) -> None:
        """Nothing more comes of this batch and those before it: not of their stages that failed or were skipped."""
        over = {batch for batch in (*self._batches.values(), *self._stages) if batch[0] == run_id}
        over = {batch for batch in over if batch[1] <= batch_id}
        for batch in over:
            self._stages.pop(batch, None)
            self._python.pop(batch, None)
        self._batches = {stage: batch for stage, batch in self._batches.items() if batch not in over}
        self._tasks = {attempt: ends for attempt, ends in self._tasks.items() if attempt[0] in self._batches}

    def _seen(self, kind: Kind, at: float | None, run_id: str, data: Mapping[str, Any]) -> Observation:
        """Events without a time of their own happened after all that came before them."""
        self._now = max(self._now, at or 0.0)
        return Observation(self._now if at is None else at, kind, self._names.get(run_id), data)

    def _job(self, event: Mapping[str, Any]) -> None:
        settings = _object(event, "Properties")
        run_id, batch = settings.get("spark.jobGroup.id"), settings.get("streaming.sql.batchId")
        if isinstance(run_id, str) and isinstance(batch, str) and batch.isdecimal():
            for stage_id in event["Stage IDs"]:
                self._batches[int(stage_id)] = run_id, int(batch)

    def _stage(self, info: Mapping[str, Any]) -> None:
        key = int(info["Stage ID"]), int(info["Stage Attempt ID"])
        tasks = self._tasks.pop(key, [])
        batch = self._batches.get(key[0])
        if info.get("Completion Time"):
            self._now = max(self._now, info["Completion Time"] / 1000)
        if batch is None or info.get("Failure Reason"):
            return  # a stage that failed may be run again
        del self._batches[key[0]]
        summary = summarise(info, tasks)
        if summary is not None:
            self._stages.setdefault(batch, []).append(summary)
            python = sum(_python_seconds(task) for task in tasks)
            if python:
                self._python[batch] = self._python.get(batch, 0.0) + python

    def _plan(self, event: Mapping[str, Any]) -> Iterator[Observation]:
        run_id = event.get("jobGroupId") or event.get("jobGroup")
        if not isinstance(run_id, str):
            found = re.search(r"runId = ([0-9a-f-]{36})", str(event.get("description")))
            run_id = found[1] if found else ""
        if run_id not in self._names:
            return
        looks, told = self._plans.get(run_id, (0, None))
        if looks >= PLANS:
            return
        text = "\n".join(_nodes(_object(event, "sparkPlanInfo")))
        plan = Plan(
            run_id,
            watermarks=parse_watermarks(text),
            keys=parse_keys(text),
            stateful=STATEFUL.search(text) is not None,
            **{name: value for name, value in self._settings.items() if value is not None},
        )
        self._plans[run_id] = looks + 1, plan
        if plan != told and (told is None or plan.keys or plan.stateful):
            yield self._seen("plan", event["time"] / 1000, run_id, _plain_data(plan))

    def _host(self, milliseconds: float) -> Iterator[Observation]:
        """The executors' cores: how many tasks run at once decides what skew costs."""
        executors = tuple(
            Executor(name, True, cores, 0, 0, 0, 0.0, 0.0, 0, 0) for name, cores in self._executors.items()
        )
        host = Host(milliseconds / 1000, None, None, None, None, None, None, (), executors)
        data = {name: value for name, value in _plain_data(host).items() if name != "at"}
        yield Observation(milliseconds / 1000, "host", None, data)


def summarise(info: Mapping[str, Any], ends: list[Mapping[str, Any]]) -> StageSummary | None:
    """One stage from its tasks, as the REST interface would sum them up; None without a finished task."""
    done = [end for end in ends if end.get("Task Metrics") and not end["Task Info"]["Failed"]]
    if not done:
        return None
    metrics = [end["Task Metrics"] for end in done]
    seconds = [each["Executor Run Time"] / 1000 for each in metrics]
    shuffled = [each["Shuffle Read Metrics"]["Total Records Read"] for each in metrics]
    records = [each["Input Metrics"]["Records Read"] + more for each, more in zip(metrics, shuffled, strict=True)]
    slowest = max(done, key=lambda end: end["Task Metrics"]["Executor Run Time"])["Task Info"]
    shares: dict[str, ExecutorShare] = {}
    for end, took, count in zip(done, seconds, records, strict=True):
        name = str(end["Task Info"]["Executor ID"])
        share = shares.get(name, ExecutorShare(0, 0.0, 0))
        shares[name] = ExecutorShare(share.tasks + 1, share.run_seconds + took, share.records + count)
    ended = info.get("Completion Time")
    return StageSummary(
        stage_id=int(info["Stage ID"]),
        name=str(info["Stage Name"]),
        tasks=int(info["Number of Tasks"]),
        failed_tasks=len(ends) - len(done),
        started=min(end["Task Info"]["Launch Time"] for end in done) / 1000,
        ended=ended / 1000 if ended else None,
        run_seconds=sum(seconds),
        cpu_seconds=sum(each["Executor CPU Time"] for each in metrics) / 1e9,
        gc_seconds=sum(each["JVM GC Time"] for each in metrics) / 1000,
        seconds_median=median(seconds),
        seconds_max=max(seconds),
        records=sum(records),
        records_median=float(median(records)),
        records_max=float(max(records)),
        reads_shuffle=sum(shuffled) > 0,
        input_bytes=sum(each["Input Metrics"]["Bytes Read"] for each in metrics),
        shuffle_read_bytes=sum(
            each["Shuffle Read Metrics"]["Local Bytes Read"] + each["Shuffle Read Metrics"]["Remote Bytes Read"]
            for each in metrics
        ),
        shuffle_write_bytes=sum(each["Shuffle Write Metrics"]["Shuffle Bytes Written"] for each in metrics),
        spill_bytes=sum(each["Memory Bytes Spilled"] + each["Disk Bytes Spilled"] for each in metrics),
        executors=shares,
        records_score=skew_score(records) if len(done) > 1 else None,
        seconds_score=skew_score(seconds) if len(done) > 1 else None,
        slowest_task=int(slowest.get("Partition ID", slowest["Index"])),
        shuffle_seconds=sum(
            each["Shuffle Read Metrics"]["Fetch Wait Time"] / 1000
            + each["Shuffle Write Metrics"]["Shuffle Write Time"] / 1e9
            for each in metrics
        ),
    )


def _python_seconds(end: Mapping[str, Any]) -> float:
    updates = (each for each in end["Task Info"].get("Accumulables", ()) if PYTHON.search(str(each.get("Name", ""))))
    return sum(float(each.get("Update") or 0) for each in updates) / 1000


def _nodes(node: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a physical plan, from its tree."""
    yield str(node.get("simpleString", ""))
    for child in node.get("children", ()):
        yield from _nodes(child)


def _plain_data(record: TaskSummary | Plan | Host | Process) -> dict[str, Any]:
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
