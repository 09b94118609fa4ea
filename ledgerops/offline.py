"""Diagnosis of what was recorded: the same records through the same functions as live."""

from __future__ import annotations

from collections.abc import Iterable

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.fleet import Fleet
from ledgerops.progress import BadRecord
from ledgerops.records import Observation

JUDGED = ("progress", "terminated", "tasks", "batch_running")  # kinds after which a verdict may change at once


class Replay:
    """A fleet after its observations; `at` is the instant of the last one, `bad` counts records that were none."""

    def __init__(self) -> None:
        self.fleet = Fleet(Diagnoser)
        self.at: float | None = None
        self.bad = 0


def replay(observations: Iterable[Observation], at: float | None = None, now: float | None = None) -> Replay:
    """Goes through the observations, with a verdict at each batch, up to the instant `at` (or to the end).

    The last verdicts are of `at`, else of `now`, else of the last observation.
    """
    result = Replay()
    fleet = result.fleet
    for seen in observations:
        if at is not None and seen.at > at:
            break
        result.at = seen.at if result.at is None else max(result.at, seen.at)
        try:
            state = fleet.ingest(seen)
        except BadRecord:
            result.bad += 1
            continue
        if state is not None and seen.kind in JUDGED:
            fleet.judge(state, result.at)
    if result.at is not None:
        result.at = at if at is not None else max(result.at, now or result.at)
        for state in fleet.queries.values():
            fleet.judge(state, result.at)
    return result
