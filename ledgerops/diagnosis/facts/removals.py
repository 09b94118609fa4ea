"""Rows that expire from state: batches that remove far more than usual, and how long a removal takes."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis.facts import state_cost
from ledgerops.diagnosis.facts.state_trend import MIN_GROWTH_ROWS
from ledgerops.diagnosis.limits import CLEAR_TIMES, FAR_TIMES, LONG_SECONDS, MOSTLY, VERY_FAR_TIMES
from ledgerops.model.records import Progress, StateOperator
from ledgerops.signals.baseline import MIN_USUAL_BATCHES, RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

MIN_SPIKE_SECONDS = FAR_TIMES * LONG_SECONDS  # over the usual time


class Storm(NamedTuple):
    """A batch of which one operator's removal takes most."""

    batch: Progress
    operator: StateOperator
    usual_rows: float  # that the operator removes in a batch
    seconds: float  # of the batch, for the removal
    usual_seconds: float  # of a batch


class Removal(NamedTuple):
    """The most seconds that removing rows took in the latest batches, and the longest of these."""

    seconds: float
    batch_seconds: float


def storms(view: QueryView) -> Iterator[Storm]:
    """Of the newest of the latest batches that has any."""
    for batch in reversed(view.baseline.recent):
        found = list(_of_batch(view, batch))
        if found:
            yield from found
            return


def _of_batch(view: QueryView, batch: Progress) -> Iterator[Storm]:
    if batch.duration < MIN_SPIKE_SECONDS:
        return
    others = [each for each in view.baseline.steady if each is not batch]
    if len(others) < MIN_USUAL_BATCHES:
        return
    usual = median(each.duration for each in others)
    too_long = max(CLEAR_TIMES * max(usual, view.interval), usual + MIN_SPIKE_SECONDS)
    for index, operator in enumerate(batch.operators if batch.duration >= too_long else ()):
        removed = median(state.removed for _, state in state_cost.reports(others, index))
        seconds = _seconds(view, operator)
        many = operator.removed >= max(MIN_GROWTH_ROWS, VERY_FAR_TIMES * removed)
        if many and seconds >= MOSTLY * batch.duration:
            yield Storm(batch, operator, removed, seconds, usual)


def longest_removal(view: QueryView) -> Removal | None:
    """None without enough batches, and without cores: task seconds over an unknown number of slots say nothing."""
    latest = view.baseline.recent
    if view.cluster.cores is None or len(latest) < RECENT_BATCHES or not latest[-1].operators:
        return None
    most = max(sum(_seconds(view, operator) for operator in batch.operators) for batch in latest)
    return Removal(most, max(batch.duration for batch in latest))


def _seconds(view: QueryView, operator: StateOperator) -> float:
    """Wall seconds of a batch in which an operator removed rows."""
    return operator.removal_seconds / state_cost.parallel_tasks(view, operator)
