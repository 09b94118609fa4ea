"""The harm of an application in one run, by Spark's event log, which knows nothing of verdicts."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from ledgerops.analysis.inputs import open_source
from ledgerops.common.format import duration
from ledgerops.drills.harness.batches import OVER_RATIO
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import Case
from ledgerops.errors import UserError
from ledgerops.model.records import Progress
from ledgerops.runtime.replay import Replay

LATE_SHARE = 0.5  # of a run, from which on it is judged: before that it starts, or comes back from what piled up
MAX_UNREAD_SHARE = 0.05  # of the rows that arrive
MAX_GROWTH_SHARE = 0.1  # of the rows that arrive, by which state may grow
MAX_STILL_TRIGGERS, MIN_STILL_SECONDS = 4.0, 10.0  # for which a watermark may stand while rows arrive


class Harm(NamedTuple):
    """What a fault does to an application: one number, and the most that does no harm. Unit: "s", "rows/s" or ""."""

    what: str
    value: float
    limit: float
    unit: str

    @property
    def ended(self) -> bool:
        """Whether the number is within the limit."""
        return self.value <= self.limit

    @property
    def text(self) -> str:
        """The number with its unit; a share as percent."""
        if self.unit == "s":
            return duration(self.value)
        return f"{self.value:.0f} {self.unit}" if self.unit else f"{self.value:.0%}"


def measure(case: Case, folder: Path) -> Harm:
    """The harm in the later half of a run. Raises UserError when the run did not end or its log cannot be read."""
    try:
        times = Bundle(folder).times
        ended = times["ended"]
    except (UserError, KeyError) as error:
        raise UserError(f"{folder} has no complete run ({error}); run it again") from None
    since = max(times["injected"], times["origin"] + LATE_SHARE * (ended - times["origin"]))
    late = [batch for batch in _batches(folder, case.blamed or case.query) if since <= batch.started < ended]
    return MEASURES.get(case.kind, _longest_wait)(case, late, since, ended)


def _batches(folder: Path, query: str) -> list[Progress]:
    replay, found = Replay(), dict[int, Progress]()
    for seen in open_source(str(folder / "eventlog")).observations:
        state = replay.take(seen)
        last = state.history.last if state is not None else None
        if last is not None and last.query == query:
            found[last.batch_id] = last
    return list(found.values())


def _longest_wait(case: Case, late: Sequence[Progress], since: float, ended: float) -> Harm:
    """Seconds of a batch against its interval: the mean, as batches may be late in turns; of none, since when."""
    interval = case.trigger or 0.0
    worked = [batch.duration for batch in late if batch.rows] or [batch.duration for batch in late] or [ended - since]
    return Harm("batch", mean(worked), OVER_RATIO * interval, "s")


def _unread(case: Case, late: Sequence[Progress], since: float, ended: float) -> Harm:
    """The share of the arriving rows that no batch read."""
    arrived = _rate(case) * (late[-1].started - late[0].started) if len(late) > 1 else 0.0
    read = sum(batch.rows for batch in late[1:])
    return Harm("rows left unread", max(0.0, 1 - read / arrived) if arrived else 1.0, MAX_UNREAD_SHARE, "")


def _dropped(case: Case, late: Sequence[Progress], since: float, ended: float) -> Harm:
    rows = sum(operator.dropped_rows for batch in late for operator in batch.operators)
    return Harm("rows dropped as late", rows / (ended - since), 0.0, "rows/s")


def _growth(case: Case, late: Sequence[Progress], since: float, ended: float) -> Harm:
    """By how much the state grows, as a share of the rows that arrive."""
    held = [sum(operator.rows for operator in batch.operators) for batch in late]
    third = len(late) // 3
    if third < 1 or not _rate(case):
        return Harm("state grows", 1.0, MAX_GROWTH_SHARE, "")
    seconds = late[-1].started - late[-third - 1].started
    return Harm("state grows", max(0.0, (held[-1] - held[-third - 1]) / seconds / _rate(case)), MAX_GROWTH_SHARE, "")


def _still(case: Case, late: Sequence[Progress], since: float, ended: float) -> Harm:
    """For how long the watermark has stood at the end of the run."""
    moved = [after.started for before, after in pairwise(late) if after.watermark != before.watermark]
    limit = max(MIN_STILL_SECONDS, MAX_STILL_TRIGGERS * (case.trigger or 0.0))
    return Harm("watermark stands", ended - max(moved, default=since), limit, "s")


Measure = Callable[[Case, Sequence[Progress], float, float], Harm]
MEASURES: dict[str, Measure] = {
    "binding-cap": _unread,
    "late-rows": _dropped,
    "unbounded-state": _growth,
    "idle-branch": _still,
}


def _rate(case: Case) -> float:
    """Rows that arrive in a second, as the case was made."""
    return float(case.control.get("load", {}).get("rate", case.options.get("rate", 0)))
