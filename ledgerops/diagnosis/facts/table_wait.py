"""Whether commits of a table wait for longer and longer until the query reads them, by the table's own history."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ledgerops.diagnosis.facts.file_wait import SERIES_BATCHES, grows
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView


class Unread(NamedTuple):
    """What a batch left in a table: since when the oldest commit waits (seconds, 0 for none), and how many do."""

    started: float  # of the batch
    waited: float
    versions: int


class TableWait(NamedTuple):
    """A table whose unread commits become older and more: `first` and `last` are seconds after the first and the last
    of `batches`. `share` of what arrives in that time is not read."""

    source: str
    since: float
    batches: int
    first: float
    last: float
    versions: int
    share: float


@once
def table_wait(view: QueryView) -> TableWait | None:
    """The table whose commits wait longest; None where the reader keeps up, or the history of no table is known."""
    found = [wait for name in view.tables.read if (wait := _wait(view, name)) is not None]
    return max(found, key=lambda each: each.last, default=None)


def _wait(view: QueryView, name: str) -> TableWait | None:
    known = list(_left(view, name))
    for count in SERIES_BATCHES:
        series = known[-count:]
        if len(series) < count:
            return None
        first, last = series[0], series[-1]
        seconds = last.started - first.started
        ages = [each.waited for each in series]
        if last.versions > first.versions and grows(ages, seconds, view.trigger.interval or 0.0):
            share = min(1.0, (last.waited - first.waited) / seconds)
            return TableWait(name, first.started, count, first.waited, last.waited, last.versions, share)
    return None


def _left(view: QueryView, name: str) -> Iterator[Unread]:
    """What each steady batch left, by the first sample after it: a batch without one is left out."""
    samples = [each for each in view.history.table_samples if each.run_id == view.history.run_id]
    times: Sequence[float] = [each.at for each in samples]
    batches = view.baseline.steady
    untils = [*(later.ended for _, later in pairwise(batches)), view.now]
    for batch, until in zip(batches, untils, strict=False):
        place = bisect_left(times, batch.ended)
        read = samples[place].sources.get(name) if place < len(times) and times[place] <= until else None
        if read is not None and (read.versions == 0 or read.since is not None):
            waited = times[place] - read.since if read.since is not None and read.versions else 0.0
            yield Unread(batch.started, max(0.0, waited), read.versions)
