"""How long a source takes to answer ledgerops itself, which asks it beside the query."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis.limits import MAX_SAMPLE_AGE_SECONDS
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_ANSWER_SECONDS = 0.15  # of an answer; within a region it takes hundredths of a second
MIN_ANSWER_RATIO = 5.0  # over the usual: the process that asks is small, and also slow on a busy machine
MIN_FORMER_SAMPLES = 15  # newest answers that do not count as usual: the slowness may have begun among them


class Wait(NamedTuple):
    """Median seconds now and usually."""

    now: float
    usual: float


@once
def slow_answers(view: QueryView) -> Wait | None:
    """How long the broker takes to answer; None unless that is far longer than usual."""
    answers = [heads for heads in view.history.heads if heads.seconds is not None and heads.at <= view.now]
    newest, former = answers[-RECENT_BATCHES:], answers[:-MIN_FORMER_SAMPLES]
    if (
        len(newest) < RECENT_BATCHES
        or len(former) < RECENT_BATCHES
        or view.now - newest[-1].at > MAX_SAMPLE_AGE_SECONDS
    ):
        return None
    wait = Wait(median(each.seconds or 0.0 for each in newest), median(each.seconds or 0.0 for each in former))
    return wait if wait.now >= max(MIN_ANSWER_SECONDS, MIN_ANSWER_RATIO * wait.usual) else None
