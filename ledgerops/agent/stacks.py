"""Where a batch waits that does not end: the threads of its query and of its tasks, in dumps of the processes that run
them.

Of such a batch Spark says only that it runs. A dump stops the threads of a process for some milliseconds, so none is
taken while batches come as usual.
"""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median
from typing import Any

import orjson

from ledgerops.agent.queue import EventQueue
from ledgerops.agent.spark_status import SparkStatus
from ledgerops.agent.watchdog import quiet_seconds
from ledgerops.model.records import DRIVER, Stack, Stacks
from ledgerops.runtime.runs import Run, Runs

MIN_SILENCE_SECONDS = 5.0
MIN_TIMES_USUAL = 3.0  # of a run's silences: its batches may take minutes
SILENCES = 9  # newest of a run that are remembered
DUMP_SECONDS = 5.0  # between two dumps
MAX_EXECUTORS = 2  # that are asked besides the driver: those with most tasks
MAX_STACKS, MAX_FRAMES = 8, 30  # of one record
TASK = re.compile(r"^Executor task launch worker for task \S+ in stage (\d+)\.")
FRAME = re.compile(r"^(?:app//|[\w.]+@[\w.]+/)?([^\s(]+)\(")  # class and method, without the module
PLAIN = re.compile(r"^(java|jdk|sun|scala)\.|\$\$Lambda")  # of these only the innermost frame says something

Threads = Sequence[Mapping[str, Any]]


class StackCollector:
    """`status` returns what Spark knows, None where it cannot be asked."""

    def __init__(
        self,
        queue: EventQueue,
        runs: Runs,
        status: Callable[[], SparkStatus | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._queue, self._runs, self._status, self._clock = queue, runs, status, clock
        self._silences: dict[str, tuple[float, deque[float]]] = {}  # run id -> last seen, how long it was silent before

    def collect(self) -> None:
        """Takes one dump for all runs that are silent for far longer than usual. Raises what Spark raises."""
        runs = self._runs.runs()
        self._silences = {run.run_id: self._noted(run) for run in runs}
        silent = [run for run in runs if self._is_silent(run)]
        spark = self._status() if silent else None
        if spark is None:
            return
        threads = _threads(spark)
        for run in silent:
            stages = run.session.running_stages(run.run_id)
            found = stacks_of(run.run_id, threads, stages, alone=len(runs) == 1)
            if found:
                record = Stacks(self._clock(), run.run_id, found)
                self._queue.put("stacks", orjson.dumps(record), run.query, run.session)

    def _noted(self, run: Run) -> tuple[float, deque[float]]:
        seen, silences = self._silences.get(run.run_id, (run.last_seen, deque[float](maxlen=SILENCES)))
        if run.last_seen > seen:
            silences.append(run.last_seen - seen)
        return run.last_seen, silences

    def _is_silent(self, run: Run) -> bool:
        silences = self._silences[run.run_id][1]
        usual = MIN_TIMES_USUAL * median(silences) if silences else 0.0
        return self._clock() - run.last_seen > max(MIN_SILENCE_SECONDS, quiet_seconds(run), usual)


def _threads(spark: SparkStatus) -> Threads:
    """Those of the driver, and of the executors with most tasks."""
    busy = [each for each in spark.executors() if each.get("activeTasks") and each["id"] != DRIVER]
    busy.sort(key=lambda each: -each["activeTasks"])
    return [
        thread for name in (DRIVER, *(each["id"] for each in busy[:MAX_EXECUTORS])) for thread in spark.threads(name)
    ]


def stacks_of(run_id: str, threads: Threads, stages: Collection[int] | None, alone: bool) -> tuple[Stack, ...]:
    """The distinct stacks of a run's own thread and of its tasks, the most frequent first: those of its running
    `stages`; where these are not known, all tasks of an application in which it is `alone`."""
    found = Counter[tuple[bool, tuple[str, ...]]]()
    for thread in threads:
        name = str(thread.get("threadName", ""))
        task = TASK.match(name)
        own = alone if stages is None else task is not None and int(task[1]) in stages
        if (task and own) or f"runId = {run_id}" in name:
            found[task is not None, tuple(_frames(thread))] += 1
    return tuple(Stack(task, count, frames) for (task, frames), count in found.most_common(MAX_STACKS) if frames)


def _frames(thread: Mapping[str, Any]) -> Sequence[str]:
    """Classes and methods, the innermost first."""
    lines = (thread.get("stackTrace") or {}).get("elems", ())
    frames = [found[1] for line in lines if (found := FRAME.match(line))]
    return frames[:1] + [frame for frame in frames[1:] if not PLAIN.search(frame)][: MAX_FRAMES - 1]
