"""How the state of an operator grows over batches: since when, by how much, and whether it goes on.

By its rows; of reports `in_bytes` (`facts.state_room`) by bytes in place of these.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

from ledgerops.model.records import Progress, StateOperator
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

Reports = Sequence[tuple[Progress, StateOperator]]

MIN_STATE_BATCHES = 10  # over which growth is judged
MIN_GROWTH_ROWS = 1000  # by which the state must have grown or shrunk; fewer cost no time
MIN_KEPT_RATIO = 0.05  # state rows that stay for each row read: below it the state does not grow
# growth per row in the later half against the earlier. A bounded set of N keys, drawn evenly, brings it down by
# (growth / 2 N): so only where N is some 16 times as many as were seen does it look unbounded
MIN_SUSTAINED_RATIO = 0.97
MAX_DEVIATIONS = 2.0  # standard deviations of that ratio, where only some of the rows bring a new key


def growing(reported: Reports) -> Reports:
    """The newest of these batches over which an operator kept growing, from the batch before its growth on.

    A plateau before it tells nothing of its pace, and after one it is over: then there are none.
    """
    still = 0
    for place in range(len(reported) - 1, 0, -1):
        batch, state = reported[place]
        grown = state.rows - reported[place - 1][1].rows
        still = still + 1 if grown < MIN_KEPT_RATIO * batch.rows else 0 if batch.rows else still
        if still == RECENT_BATCHES:
            return reported[place + RECENT_BATCHES - 1 :]
    return reported


def forgets(view: QueryView, reported: Reports) -> bool:
    """Whether an operator removed rows in these batches or shrank, or the query's state shrank in this run, in the hour
    that is remembered."""
    if any(state.removed for _, state in reported):
        return True
    if any(later.rows < earlier.rows for (_, earlier), (_, later) in pairwise(reported)):
        return True
    began = view.history.started_at or 0.0
    rows = [point.state_rows for point in view.history.trend if point.at >= began]
    return any(later < earlier for earlier, later in pairwise(rows))


def grown(reported: Reports) -> tuple[float, int, int]:
    """Seconds, the rows by which the state grew in them, and the rows that were read."""
    (first, begin), (last, end) = reported[0], reported[-1]
    return last.ended - first.ended, end.rows - begin.rows, sum(batch.rows for batch, _ in reported[1:])


def sustained(reported: Reports) -> bool:
    """Whether each row read in the later half leaves nearly as much state as in the earlier."""
    middle = len(reported) // 2
    per_row, chance = [], 0.0
    for half in (reported[: middle + 1], reported[middle:]):
        _, kept, read = grown(half)
        share = kept / read if read else 0.0
        per_row.append(share)
        if 0 < share < 1:
            chance += (1 - share) / (share * read)
    return per_row[0] > 0 and per_row[1] >= (MIN_SUSTAINED_RATIO - MAX_DEVIATIONS * sqrt(chance)) * per_row[0]


class Pause(NamedTuple):
    """A time without a removal, after removals."""

    seconds: float
    usual: float  # the longest before
    most_rows: int  # that the operator ever held before
    since: Reports  # from the last batch with a removal on


def without_removal(reports: Reports) -> Pause | None:
    """The time since rows were last removed; None where too few removals show how often that usually happens."""
    removing = [place for place, (_, state) in enumerate(reports) if state.removed > 0]
    if len(removing) < RECENT_BATCHES:
        return None
    since = reports[removing[-1] :]
    usual = max(reports[later][0].ended - reports[earlier][0].ended for earlier, later in pairwise(removing))
    before = max(state.rows for _, state in reports[: removing[-1] + 1])
    return Pause(reports[-1][0].ended - since[0][0].ended, usual, before, since)


def remembered(view: QueryView, reports: Reports) -> float:
    """Seconds over which the run was seen growing: an hour at most."""
    began = view.history.started_at or 0.0
    oldest = next((point.at for point in view.history.trend if point.at >= began), reports[0][0].ended)
    return reports[-1][0].ended - min(oldest, reports[0][0].ended)
