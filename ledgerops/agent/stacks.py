"""Where a batch waits that does not end: threads of the driver's JVM, its query's and, in local mode, its tasks'.

Of such a batch Spark says only that it runs. Nobody is asked while batches come as usual.
"""

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Collection
from statistics import median

import orjson

from ledgerops.agent.queue import EventQueue
from ledgerops.agent.sessions import Threads
from ledgerops.agent.watchdog import Silence, quiet_seconds
from ledgerops.model.records import LONG_RUNNING, Stack, Stacks
from ledgerops.runtime.runs import Run, Runs

MIN_SILENCE_SECONDS = 5.0
MIN_FIRST_SECONDS = 30.0  # the first batch of a run may read a long backlog
MIN_TIMES_USUAL = 3.0  # of a run's silences: its batches may take minutes
SILENCES = 9  # newest of a run that are remembered
LOOK_SECONDS = 5.0  # between two looks
MAX_FRAMES = 30  # of a stack that are kept
TASK = re.compile(r"^Executor task launch worker for task \S+ in stage (\d+)\.")
WANTED = re.compile(f"{TASK.pattern}|^stream execution thread for ")
PLAIN = re.compile(r"^(java|jdk|sun|scala)\.|\$\$Lambda")  # of these only the innermost frame says something


class StackCollector:
    """Looks at runs that are silent for far longer than usual."""

    def __init__(
        self, queue: EventQueue, runs: Runs, clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._queue, self._runs, self._clock, self._steady = queue, runs, clock, steady
        self._silence = Silence(clock)
        self._silences: dict[str, tuple[float, deque[float]]] = {}  # run id -> last seen, how long it was silent before

    def collect(self) -> None:
        """Queues what the threads of silent runs do. Raises the last error, after all were tried."""
        runs = self._runs.runs()
        self._silences = {run.run_id: self._noted(run) for run in runs}
        self._silence.keep(self._silences)
        problem: Exception | None = None
        looked: dict[str, Threads] = {}  # by session
        for run in runs:
            if not run.session.classic or not run.session.alive or not self._is_silent(run):
                continue
            try:
                stages = run.session.running_stages(run.run_id)
                if run.session.key not in looked:
                    looked[run.session.key] = run.session.threads(WANTED.match)
                found = stacks_of(run.run_id, looked[run.session.key], stages)
            except Exception as error:  # the other runs are looked at all the same
                problem = error
                continue
            if found:
                record = Stacks(self._clock(), run.run_id, found)
                self._queue.put("stacks", orjson.dumps(record), run.query, run.session)
        if problem is not None:
            raise problem

    def _noted(self, run: Run) -> tuple[float, deque[float]]:
        seen, silences = self._silences.get(run.run_id, (run.last_seen, deque[float](maxlen=SILENCES)))
        if run.last_seen > seen and not run.idle:
            silences.append(run.last_seen - seen)
        return run.last_seen, silences

    def _is_silent(self, run: Run) -> bool:
        if run.plan is not None and (run.plan.ends_itself or run.plan.trigger in LONG_RUNNING):
            return False  # long by design
        silences = self._silences[run.run_id][1]
        usual = MIN_TIMES_USUAL * median(silences) if silences else MIN_FIRST_SECONDS
        return self._silence.seconds(run, self._steady()) > max(MIN_SILENCE_SECONDS, quiet_seconds(run), usual)


def stacks_of(run_id: str, threads: Threads, stages: Collection[int]) -> tuple[Stack, ...]:
    """The distinct stacks of a run's own thread and of the tasks of its running `stages`, the most frequent first."""
    found = Counter[tuple[bool, tuple[str, ...], bool]]()
    for name, runs, frames in threads:
        task = TASK.match(name)
        if int(task[1]) in stages if task else f"runId = {run_id}" in name:
            telling = [frame for frame in frames[1:] if not PLAIN.search(frame)][: MAX_FRAMES - 1]
            found[task is not None, (*frames[:1], *telling), runs] += 1
    return tuple(Stack(task, count, frames, runs) for (task, frames, runs), count in found.most_common() if frames)
