"""Whether anybody watches a query: without samples nothing is known of it."""

from __future__ import annotations

from ledgerops.signals.query_view import QueryView

MIN_UNWATCHED_SECONDS = 45.0  # without any report of the observer; attaching to another session takes half as long


def unseen(view: QueryView) -> float:
    """Seconds since the observer, which reports every 5 s, last reported, or the query did; 0 without an observer."""
    if not view.observer:
        return 0.0
    return max(0.0, view.now - max(view.observer[-1].at, view.history.last_seen or 0.0))
