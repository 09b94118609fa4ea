"""Baseline diagnosers for comparison: alerts on fixed thresholds, always the same answer, and chance.

They see the same data, also without the start of a run. Thresholds are those of common alert rules, scaled to drills
of two minutes: three batches in a row above their trigger interval, a backlog above ten batches, a lag above 30 s, a
batch that runs for 30 s, an end with an exception.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from ledgerops.diagnosis.rules import RULES
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import Case
from ledgerops.model import recording
from ledgerops.runtime.replay import Replay
from ledgerops.signals.query_view import QueryView

MAX_BACKLOG_BATCHES = 10
MAX_LAG_SECONDS = 30.0
MAX_BATCH_SECONDS = 30.0
BATCHES_IN_A_ROW = 3
MOST_FREQUENT = "slow-sink"  # the cause that the second baseline always names


@dataclass(frozen=True)
class BaselineAnswer:
    """What fixed thresholds reported for one drill: after how many seconds from the effect, and which cause."""

    early: bool  # an alarm before the fault, or on a control
    seconds: float | None
    cause: str | None


def thresholds(drill: Case, bundle: Bundle) -> BaselineAnswer:
    """The first alarm on any query. Raises UserError when the recording cannot be read."""
    times = bundle.times
    since = times.get("effect", times["injected"])
    for at, cause in _alarms(bundle):
        if drill.healthy or at < times["injected"]:
            return BaselineAnswer(True, None, cause)
        if at <= max(times["repaired"], since + drill.deadline_seconds):
            seconds = max(0.0, at - since)
            return BaselineAnswer(False, seconds if seconds <= drill.deadline_seconds else None, cause)
    return BaselineAnswer(False, None, None)


def chance(rules: Sequence[str]) -> float:
    """The probability that one of these rules is drawn at random."""
    return len(rules) / len(RULES)


def _alarms(bundle: Bundle) -> Iterator[tuple[float, str]]:
    replay = Replay()
    for seen in recording.read(bundle.recording):
        state = replay.take(seen)
        if state is not None and (cause := _alarm(replay.registry.view(state, seen.at))) is not None:
            yield seen.at, cause


def _alarm(view: QueryView) -> str | None:
    history = view.history
    if history.ended is not None:
        return "query-failed" if history.ended.exception is not None else None
    if (view.run.running_seconds or 0.0) > MAX_BATCH_SECONDS:
        return "query-stuck"
    latest, interval = view.baseline.steady[-BATCHES_IN_A_ROW:], view.trigger.interval
    if len(latest) < BATCHES_IN_A_ROW:
        return None
    if interval and all(batch.duration > interval for batch in latest):
        return "slow-sink"
    rows = max(1, median(batch.rows for batch in latest))
    if (view.lag.backlog or 0) > MAX_BACKLOG_BATCHES * rows or (view.lag.seconds or 0.0) > MAX_LAG_SECONDS:
        return "input-overload"
    return None
