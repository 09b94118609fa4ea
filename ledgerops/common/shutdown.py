"""Ending a run: signals, and queries that are stopped between two batches, so that nothing is cut off in the middle."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming import StreamingQuery

# how long running batches may take to end; one that is cut off is repeated at the next start, and nothing is lost
GRACE_SECONDS = 15.0
REASONS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Stop:
    """Whether and why the run shall end. Until `calm()` a signal interrupts at once; after it, it only asks.

    It asks in both cases: an interrupt that comes within a destructor or a callback of C is dropped by Python, and
    who waits for the stop ends all the same. A handler runs between any two steps of the main thread, so what it
    touches has to be reentrant: `Event.set` within `Event.wait` waits for a lock that its own thread holds. And
    `SimpleQueue.get` waits for ever when its time is over before it begins to wait (CPython 3.11 to 3.13).
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self._unasked = threading.Lock()  # held until somebody asks; whoever gets it then gives it back
        self._unasked.acquire()
        self._calm = False

    def ask(self, reason: str) -> None:
        """Asks the run to end; the first reason is kept. May be called from a signal handler."""
        if self.reason is None:
            self.reason = reason
        self._release()

    @property
    def asked(self) -> bool:
        """Whether the run was asked to end."""
        return self.reason is not None

    @property
    def signalled(self) -> bool:
        """Whether a signal was the first to ask."""
        return self.reason in REASONS.values()

    def wait(self, seconds: float) -> bool:
        """True as soon as the run is asked to end; False after `seconds`."""
        if self._unasked.acquire(timeout=max(0.0, seconds)):
            self._release()
        return self.asked

    def _release(self) -> None:
        with suppress(RuntimeError):  # released already: by an earlier reason, or by a handler that came in between
            self._unasked.release()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Handles SIGINT and SIGTERM within the context; restores the earlier handlers after it. Main thread only."""
        before = {number: signal.signal(number, self._heard) for number in REASONS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def calm(self) -> None:
        """From now on a signal ends the run in order. Spark installs a handler of its own: this takes its place."""
        self._calm = True
        for number in REASONS:
            signal.signal(number, self._heard)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.ask(REASONS[signal.Signals(number)])
        if not self._calm:
            raise KeyboardInterrupt


@contextmanager
def ended_in_order() -> Iterator[Stop]:
    """A stop that a signal only asks, for work that ends by itself then; after it, an interrupt as ever."""
    stop = Stop()
    with stop.on_signals():
        stop.calm()
        yield stop
    if stop.asked:
        raise KeyboardInterrupt


def stop_queries(queries: Sequence[StreamingQuery], grace: float = GRACE_SECONDS) -> list[str]:
    """Stops every query, each between two batches where it comes to one within `grace` seconds in all. Returns the
    names of those that had to be stopped within a batch."""
    limit = time.monotonic() + grace
    left = [query for query in queries if query.isActive]
    while left and time.monotonic() < limit:
        for query in list(left):
            if not _busy(query):
                _end(query)
                left.remove(query)
        if left:
            time.sleep(0.05)
    if left:
        from concurrent.futures import ThreadPoolExecutor  # most commands stop no query

        with ThreadPoolExecutor(len(left)) as pool:  # each may take all of Spark's stopTimeout
            list(pool.map(_end, left))
    return [str(query.name) for query in left]


def _end(query: StreamingQuery) -> None:
    """Stops a query; one that waits for an unreachable server does not notice, and ends with the process."""
    try:
        query.stop()
    except Exception as error:
        if "failed to stop within" not in str(error):
            raise


def _busy(query: StreamingQuery) -> bool:
    status: dict[str, Any] = query.status
    return bool(status["isTriggerActive"]) and query.isActive
