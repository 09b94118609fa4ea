"""Writes the recording in a thread of its own: a file system that hangs holds up neither judgements nor metrics."""

import threading
import time
from collections import deque
from collections.abc import Callable

from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.recording import Recorder

WAITING_BYTES = 8 * 1024 * 1024  # of lines, above which the oldest go: ten minutes of 4 queries with a batch a second
RETRY_SECONDS = 60.0  # until writing is tried again after a failure
HANGING_SECONDS = 15.0  # of one write, after which it is told


class RecordingWriter:
    """What cannot be written waits until it can. `failed` is told what went wrong, with a sentence."""

    def __init__(
        self, recorder: Recorder, stats: SelfStats, failed: Callable[[str, Exception, str], None],
        steady: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._recorder, self._stats, self._failed, self._steady = recorder, stats, failed, steady
        self._lock = threading.Lock()  # of what comes
        self._coming: deque[bytes] = deque()
        self._coming_bytes = 0
        self._lines: deque[bytes] = deque()  # that are being written, or were when it failed
        self._resumes = -float("inf")  # by the steady clock: one that is set back must not stop the recording
        self._began: float | None = None  # the present write
        self._news, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledgerops-recording", daemon=True)

    def start(self) -> None:
        """Starts the thread. Call it once."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Writes what waits, and ends; leaves a file system alone that does not answer in time (seconds)."""
        self._stopping.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        else:
            self._end()

    def discard(self) -> None:
        """In a forked child: what waits is the parent's to write."""
        self._lock, self._coming, self._lines = threading.Lock(), deque(), deque()

    def add(self, line: bytes) -> None:
        """Takes a line, which ends with its newline. Does not wait."""
        with self._lock:
            self._coming.append(line)
            self._coming_bytes += len(line)
            while self._coming_bytes > WAITING_BYTES:
                self._coming_bytes -= len(self._coming.popleft())

    def flush(self) -> None:
        """Has what came written: by the thread, or at once where it does not run."""
        if not self._thread.is_alive():
            self._write()
        elif self._coming:
            self._news.set()

    def pause(self) -> str | None:
        """Why nothing is written at present; None while it is."""
        now, began = self._steady(), self._began
        folder = str(self._recorder.folder)[:300]
        if began is not None and now - began > HANGING_SECONDS:
            return f"recording to {folder} has waited for the file system for {now - began:.0f} s"
        if now < self._resumes:
            return f"recording to {folder} is paused after an error; see the driver's log"
        return None

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._news.wait()
            self._news.clear()
            self._write()
        self._end()

    def _write(self) -> None:
        if self._steady() < self._resumes:
            return
        with self._lock:
            self._lines += self._coming
            self._coming.clear()
            self._coming_bytes = 0
        size = sum(map(len, self._lines))
        while size > WAITING_BYTES:
            size -= len(self._lines.popleft())
        self._began = self._steady()
        try:
            if self._recorder.write(self._lines):
                self._told(FileNotFoundError("it was removed"), "recording anew to {}")
        except Exception as error:
            self._resumes = self._steady() + RETRY_SECONDS  # a full disk may be cleared
            self._told(error, "cannot record to {}; what comes waits in memory")
            self._close()
        self._began = None
        with self._stats.lock:
            self._stats.recording_bytes += size - sum(map(len, self._lines))

    def _end(self) -> None:
        self._resumes = -float("inf")
        self._write()
        self._close()

    def _close(self) -> None:
        try:
            self._recorder.close()
        except OSError as error:
            self._told(error, "cannot close the recording in {}")

    def _told(self, error: Exception, text: str) -> None:
        self._failed("recording", error, text.format(str(self._recorder.folder)[:300]))
