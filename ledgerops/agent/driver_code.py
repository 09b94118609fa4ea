"""Where the function of `foreachBatch` spends its time: samples of the driver's own Python threads.

Spark calls the function in a thread of the driver, and reports nothing of what it does there. A look at all threads
takes some tens of microseconds, and of the stack only one line is kept: the innermost one of the application's own
files, with the package that it calls.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import orjson

from ledgerops.agent.plan import batch_session, session_of
from ledgerops.agent.queue import EventQueue
from ledgerops.common.python_code import is_library, package_of
from ledgerops.runtime.runs import Run, Runs

SAMPLE_SECONDS = 0.25
IDLE_SECONDS = 1.0  # while no query has such a function: a thread that wakes costs something, too
REPORT_SECONDS = 5.0
ENTRY = "ForeachBatchFunction.call"  # of pyspark.sql.utils: what Spark calls
MAX_FRAMES = 200  # of a stack, from its innermost one on
MAX_LINES = 200  # that are told apart between two reports
Line = tuple[str, int, str, str]  # file, line, function, the package that it calls


class Called(NamedTuple):
    """A function of `foreachBatch` that runs: its wrapper, the rows that Spark gave it, and the line where it is."""

    function: Any
    rows: Any
    line: Line


class DriverCodeCollector:
    """Counts the lines of each query that has such a function. Of several it is the session in which Spark runs their
    batches that tells whose a thread is: it is asked for once for each query and each function."""

    def __init__(self, queue: EventQueue, runs: Runs, clock: Callable[[], float] = time.monotonic) -> None:
        self._queue, self._runs, self._clock = queue, runs, clock
        self._lines: dict[str, Counter[Line]] = {}  # by run id
        self._sessions: dict[str, str | None] = {}  # of runs
        self._owners: WeakKeyDictionary[Any, str] = WeakKeyDictionary()  # run ids, by function
        self._strange: WeakKeyDictionary[Any, Collection[str]] = WeakKeyDictionary()  # functions of none of these runs
        self._due = float("-inf")

    def collect(self) -> float:
        """Takes a sample; every REPORT_SECONDS queues of each run the function with most of them and its most frequent
        line. Returns the seconds until the next sample."""
        having = (run for run in self._runs.runs() if run.plan is not None and "ForeachBatch" in (run.plan.sink or ""))
        runs = {run.run_id: run for run in having if run.session.classic}
        self._lines = {run_id: lines for run_id, lines in self._lines.items() if run_id in runs}
        self._sessions = {run_id: self._sessions.get(run_id) for run_id in runs}
        if not self._lines:
            self._due = self._clock() + REPORT_SECONDS
        for frame in sys._current_frames().values() if runs else ():
            found = called(frame)
            run_id = self._owner(found, runs) if found is not None else None
            if found is None or run_id is None:
                continue
            lines = self._lines.setdefault(run_id, Counter())
            if found.line in lines or len(lines) < MAX_LINES:
                lines[found.line] += 1
        if self._lines and self._clock() >= self._due:
            for run_id, lines in self._lines.items():
                data = {"run_id": run_id, "samples": lines.total(), **_most_frequent(lines)}
                self._queue.put("driver_code", orjson.dumps(data), runs[run_id].query, runs[run_id].session)
            self._lines.clear()
        return SAMPLE_SECONDS if runs else IDLE_SECONDS

    def _owner(self, found: Called, runs: Mapping[str, Run]) -> str | None:
        """The run that a function belongs to; None where that is not known."""
        if len(runs) == 1:
            return next(iter(runs))
        known = self._owners.get(found.function)
        if known in runs:  # else it is new, or its writer was started again
            return known
        if self._strange.get(found.function) == runs.keys():
            return None
        session = session_of(found.rows)
        for run_id, run in runs.items():
            self._sessions[run_id] = self._sessions[run_id] or batch_session(run)
        owner = next((run_id for run_id, each in self._sessions.items() if each and each == session), None)
        if owner is not None:
            self._owners[found.function] = owner
        elif session and all(self._sessions.values()):
            self._strange[found.function] = frozenset(runs)
        return owner


def called(frame: FrameType | None) -> Called | None:
    """The innermost line of the application's files in a thread that Spark called; None in any other thread."""
    line: Line | None = None
    callee = ""  # the file of the frame that this one called
    for _ in range(MAX_FRAMES):
        if frame is None:
            return None
        if frame.f_code.co_qualname == ENTRY:
            given = frame.f_locals
            return Called(given["self"], given.get("jdf"), line) if line is not None else None
        if line is None and not is_library(frame.f_code.co_filename):
            line = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, package_of(callee)
        callee = frame.f_code.co_filename
        frame = frame.f_back
    return None


def _most_frequent(lines: Counter[Line]) -> dict[str, object]:
    functions = Counter[tuple[str, str]]()
    for (file, _, function, _), count in lines.items():
        functions[file, function] += count
    [((file, function), within)] = functions.most_common(1)
    own = ((count, line, calls) for (name, line, of, calls), count in lines.items() if (name, of) == (file, function))
    _, line, calls = max(own)
    return {"file": file, "line": line, "function": function, "within": within, "calls": calls}
