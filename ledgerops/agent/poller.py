"""A collector's thread: one look after another, and no failure of a look reaches anybody else."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from ledgerops.metrics.self_watch import SelfStats

log = logging.getLogger("ledgerops")


class Periodic:
    """Calls `look` every `interval` seconds on a daemon thread; what it raises is counted, and said the first time."""

    def __init__(self, name: str, interval: float, look: Callable[[], None], stats: SelfStats) -> None:
        self.name, self._interval, self._look, self._stats = name, interval, look, stats
        self._stopping = threading.Event()
        self._warned = False
        self._thread = threading.Thread(target=self._run, name=f"ledgerops-{name}", daemon=True)

    def start(self) -> None:
        """Starts the thread, which looks at once and then every `interval` seconds. Call it once."""
        self._thread.start()

    def stop(self, timeout: float = 3.0) -> None:
        """Ends after the look that is under way. May be called twice."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._look()
            except Exception as error:
                if not self._stopping.is_set():
                    self._failed(error)
            self._stopping.wait(self._interval)

    def _failed(self, error: Exception) -> None:
        self._stats.error(self.name)
        if not self._warned:
            self._warned = True
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            log.warning(
                "the collector %s failed (%.300s); it is retried, and further failures are only counted",
                self.name,
                text,
            )
