"""Where the function of `foreachBatch` spends its time: samples of the driver's own Python threads.

Spark calls the function in a thread of the driver, and reports nothing of what it does there. A look at all threads
takes some tens of microseconds; nothing is asked of the JVM, and of the stack only one line is kept: the innermost one
of the application's own files.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType

import orjson

from ledgerops.agent.queue import EventQueue
from ledgerops.common.python_code import is_library
from ledgerops.runtime.runs import Runs

SAMPLE_SECONDS = 0.25
REPORT_SECONDS = 5.0
ENTRY = "ForeachBatchFunction.call"  # of pyspark.sql.utils: what Spark calls
MAX_FRAMES = 200  # of a stack, from its innermost one on
MAX_LINES = 200  # that are told apart between two reports

Line = tuple[str, int, str]  # file, line, function


class DriverCodeCollector:
    """Counts the lines of the one query that has such a function; of several it is not known whose a thread is."""

    def __init__(self, queue: EventQueue, runs: Runs, clock: Callable[[], float] = time.monotonic) -> None:
        self._queue, self._runs, self._clock = queue, runs, clock
        self._lines = Counter[Line]()
        self._due = float("-inf")

    def collect(self) -> None:
        """Takes a sample; every REPORT_SECONDS queues the function with most of them and its most frequent line."""
        runs = [run for run in self._runs.runs() if run.plan is not None and "ForeachBatch" in (run.plan.sink or "")]
        if len(runs) != 1 or not runs[0].session.classic:
            self._lines.clear()
            return
        if not self._lines:
            self._due = self._clock() + REPORT_SECONDS
        for frame in sys._current_frames().values():
            line = own_line(frame)
            if line is not None and (line in self._lines or len(self._lines) < MAX_LINES):
                self._lines[line] += 1
        if self._lines and self._clock() >= self._due:
            run, most = runs[0], _most_frequent(self._lines)
            data = {"run_id": run.run_id, "samples": self._lines.total(), **most}
            self._queue.put("driver_code", orjson.dumps(data), run.query, run.session)
            self._lines.clear()


def own_line(frame: FrameType | None) -> Line | None:
    """The innermost line of the application's files in a thread that Spark called; None in any other thread."""
    found: Line | None = None
    for _ in range(MAX_FRAMES):
        if frame is None:
            return None
        if frame.f_code.co_qualname == ENTRY:
            return found
        if found is None and not is_library(frame.f_code.co_filename):
            found = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
    return None


def _most_frequent(lines: Counter[Line]) -> dict[str, object]:
    functions = Counter[tuple[str, str]]()
    for (file, _, function), count in lines.items():
        functions[file, function] += count
    [((file, function), within)] = functions.most_common(1)
    line = max((count, line) for (name, line, of), count in lines.items() if (name, of) == (file, function))[1]
    return {"file": file, "line": line, "function": function, "within": within}
