"""Time in which nobody watched a query: what passes in it tells nothing of the query."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ledgerops.diagnosis.limits import MOSTLY, VERY_LONG_SECONDS
from ledgerops.model.records import Host
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_UNWATCHED_SECONDS = 45.0  # without any report of the observer; attaching to another session takes half as long
PYTHON = "driver_python"


class Standstill(NamedTuple):
    """When the whole driver stood still."""

    since: float
    until: float

    @property
    def seconds(self) -> float:
        """How long."""
        return self.until - self.since


def unseen(view: QueryView) -> float:
    """Seconds since the observer, which reports every 5 s, last reported, or the query did; 0 without an observer."""
    if not view.observer:
        return 0.0
    return max(0.0, view.now - max(view.observer[-1].at, view.history.last_seen or 0.0))


@once
def standstills(view: QueryView) -> Sequence[Standstill]:
    """When the driver stood still during this run, oldest first: its observer gave no sign and went on afterwards, no
    batch began or ended for so long, and its Python did not compute meanwhile.

    The observer waits for nothing, neither for Spark nor for its JVM. So that is a machine, a container or a process
    that was suspended: a batch that was running took as much longer.
    """
    began = view.history.started_at or 0.0
    looks = [max(began, each.at) for each in view.observer if each.at <= view.now]
    if not any(later - earlier >= VERY_LONG_SECONDS for earlier, later in pairwise(looks)):
        return []
    signs = sorted({*looks, *(at for batch in view.batches for at in (batch.started, batch.ended)), view.now})
    found = (Standstill(*pair) for pair in pairwise(signs) if began <= pair[0] and pair[1] <= looks[-1])
    return [each for each in found if each.seconds >= VERY_LONG_SECONDS and not _computed(view, each)]


def stood_still(view: QueryView, since: float, until: float) -> float:
    """Seconds of this time in which the driver stood still."""
    return sum(max(0.0, min(until, each.until) - max(since, each.since)) for each in standstills(view))


def _computed(view: QueryView, still: Standstill) -> bool:
    """Whether the driver's Python used the CPU meanwhile: a function that never yields holds up the observer, too."""
    before = [host for host in view.hosts if host.at <= still.since]
    after = [host for host in view.hosts if host.at >= still.until]
    if not before or not after:
        return False
    used = sum(_seconds(after[0])) - sum(_seconds(before[-1]))
    return used > MOSTLY * still.seconds


def _seconds(host: Host) -> Iterator[float]:
    return (process.cpu_seconds for process in host.processes if process.role == PYTHON)
