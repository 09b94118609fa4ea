"""The truth about a query's batches, from the files of its checkpoint, which no diagnosis reads."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ledgerops.checkpoint.batch_log import BatchLog
from ledgerops.drills.harness.case import Case

OVER_RATIO = 1.04  # of a batch to its interval, which it then outlasts
MIN_COSTLY_SECONDS = 1.0  # of a batch of a query that runs back to back
MIN_STUCK_SECONDS = 15.0
GROWTH_RATIO = 1.5
OUTLASTS = "outlasts its trigger"  # harm that only somebody who knows the interval can see
LONG_RATIO = 3.0  # of a batch to its interval: a single batch is proof
MIN_LONG_SECONDS = 6.0
# kinds of healthy cases in which batches are late on purpose
PAUSED = ("slow-first-batch", "idle-source", "graceful-restart", "catch-up-after-pause", "stopped-by-its-owner")


class Harm(NamedTuple):
    """When a fault began to do harm and what it does; `level` is the least severity that must be reported."""

    at: float
    what: str
    level: str


def starts(checkpoint: Path) -> list[float]:
    """When each batch was planned, oldest first (seconds since the epoch)."""
    return [batch.planned_at for batch in BatchLog(checkpoint).times()]


def harm(case: Case, folder: Path, onset: float, ended: float) -> Harm | None:
    """What the fault of a case did from its onset on; None when it did no harm, so that the case shows nothing."""
    if case.harm == "given":
        at = onset + case.harm_after
        return Harm(at, case.kind, case.due) if at < ended else None
    if case.harm == "failure":
        failed = [at for at in failures(folder) if at >= onset or case.onset == "birth"]
        return Harm(failed[0], "failed", "warning") if failed else None
    name = case.blamed or case.query or "unnamed"
    return slow(folder / "checkpoints" / name, case.trigger, onset, ended)


def slow(checkpoint: Path, trigger: float | None, onset: float, ended: float) -> Harm | None:
    """Whether batches stop, outlast their interval, grow longer, or merely take long."""
    begun = [at for at in starts(checkpoint) if at <= ended]
    if not begun:
        return Harm(onset + MIN_STUCK_SECONDS, "makes no progress", "warning")
    first = 1 if onset < begun[0] + MIN_STUCK_SECONDS else 0  # a first batch takes longer than the others
    gaps = [(later, later - earlier) for earlier, later in pairwise(begun) if later > onset][first:]
    found: list[Harm] = []
    quiet = max(MIN_STUCK_SECONDS, 4 * (trigger or 0.0))
    last = max([onset, *begun])
    if ended - last > quiet:
        found.append(Harm(last + quiet, "makes no progress", "warning"))
    if trigger:
        late = OVER_RATIO * trigger  # two in a row are
        over = [Harm(at, OUTLASTS, "warning") for (_, one), (at, gap) in pairwise(gaps) if min(one, gap) > late]
        long = max(LONG_RATIO * trigger, MIN_LONG_SECONDS)
        over += [Harm(at - gap + long, OUTLASTS, "warning") for at, gap in gaps if gap > long]
        return min([*found, *over], default=None)
    gaps = gaps[1:]
    if not found and len(gaps) < 4:
        return Harm(gaps[-1][0], "cannot keep up", "warning") if gaps else None
    third = max(1, len(gaps) // 3)
    before, after = (median([gap for _, gap in part] or [0.0]) for part in (gaps[:third], gaps[-third:]))
    if after > GROWTH_RATIO * before and after > 2 * MIN_COSTLY_SECONDS:
        grown = next(at for at, gap in gaps if gap > GROWTH_RATIO * before)
        found.append(Harm(grown, "cannot keep up", "warning"))
    if not found and after > MIN_COSTLY_SECONDS:
        found.append(Harm(gaps[0][0], "costly batches", "info"))
    return min(found, default=None)


def slow_machine(case: Case, folder: Path, until: float) -> bool:
    """Whether a healthy case was slow on this machine, up to `until` (epoch seconds): three batches in a row took 20 %
    longer than their interval."""
    if not case.trigger or case.trigger < 0:
        return False
    for checkpoint in (folder / "checkpoints").glob("*"):
        begun = [at for at in starts(checkpoint) if at <= until]
        over = [later - earlier > 1.2 * case.trigger for earlier, later in pairwise(begun[2:])]
        if any(all(over[number : number + 3]) for number in range(len(over) - 2)) and case.kind not in PAUSED:
            return True
    return False


def failures(folder: Path) -> Sequence[float]:
    """When queries of the application failed, by its own log."""
    file = folder / "failures.jsonl"
    return [json.loads(line)["at"] for line in file.read_text("utf-8").splitlines()] if file.exists() else []
