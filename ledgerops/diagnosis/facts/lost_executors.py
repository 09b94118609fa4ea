"""Executors that died lately, and how much longer batches take since."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ledgerops.model.records import RemovedExecutor
from ledgerops.signals.baseline import MIN_DURATIONS
from ledgerops.signals.query_view import QueryView

FRESH_SECONDS = 300.0  # after which a replaced executor no longer explains the batch time
RELEASED = ("idle", "killed by driver", "decommission", "requested")  # in the reasons of executors that were let go


def slower_since(view: QueryView, since: float) -> float | None:
    """By what share the longest batch since the loss exceeds the median of those before; None with fewer than three."""
    before = [batch.duration for batch in view.batches if batch.ended < since][-MIN_DURATIONS * 2 :]
    after = [batch.duration for batch in view.batches if batch.ended >= since] + [view.run.unfinished_seconds or 0.0]
    if len(before) < MIN_DURATIONS or max(after) <= 0:
        return None
    return max(0.0, 1 - median(before) / max(after))


def lost_executors(view: QueryView) -> Sequence[RemovedExecutor]:
    """The executors that died lately, oldest first; while this run was on."""
    newest = next((host for host in reversed(view.hosts) if host.removed_executors), None)
    since = max(view.now - FRESH_SECONDS, view.history.started_at or 0.0)
    return [
        each
        for each in (newest.removed_executors if newest is not None else ())
        if since <= each.removed_at <= view.now and not any(sign in (each.reason or "").lower() for sign in RELEASED)
    ]
