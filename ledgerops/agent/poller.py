"""A collector's thread: one sample after another; no failure reaches another collector."""

import logging
import threading
from collections.abc import Callable

from ledgerops.metrics.self_watch import SelfStats

log = logging.getLogger("ledgerops")


class Poller:
    """Calls `collect` every `interval` seconds, or after those that it returns, on a daemon thread; errors are counted,
    and logged the first time. What fails because the interpreter is ending is neither: an application may end without
    closing its watch, and a Spark Connect client can ask nothing from then on."""

    def __init__(self, name: str, interval: float, collect: Callable[[], float | None], stats: SelfStats) -> None:
        self.name, self._interval, self._collect, self._stats = name, interval, collect, stats
        self._stopping = threading.Event()
        self._warned = False
        self._thread = threading.Thread(target=self._run, name=f"ledgerops-{name}", daemon=True)

    def start(self) -> None:
        """Starts the thread, which collects at once. Call it once."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Ends after the current call, for which it waits at most `timeout` seconds. May be called twice."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopping.is_set():
            wait = None
            try:
                wait = self._collect()
            except Exception as error:
                # Python refuses to start a thread, or an executor a task, once the interpreter is ending
                ending = isinstance(error, RuntimeError) and str(error).endswith("shutdown")
                if not self._stopping.is_set() and not ending:
                    self._failed(error)
            self._stopping.wait(self._interval if wait is None else wait)

    def _failed(self, error: Exception) -> None:
        self._stats.error(self.name)
        if not self._warned:
            self._warned = True
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            log.warning(
                "the collector %s failed (%.300s); it is retried, and further failures are only counted",
                self.name, text,
            )  # fmt: skip
