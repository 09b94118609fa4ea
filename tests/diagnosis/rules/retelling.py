"""A view's batches told anew, with what the fixture `history` does not say of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ledgerops.model.records import Progress
from ledgerops.signals.query_view import QueryView


def retold(view: QueryView, fields: Callable[[int, Progress], Mapping[str, Any]]) -> QueryView:
    """A view of the same history in which `fields(place, batch)` are replaced in each batch."""
    past = view.history
    past.batches = deque((replace(each, **fields(n, each)) for n, each in enumerate(past.batches)), past.batches.maxlen)
    return QueryView(past, view.now, view.hosts, view.others, view.freshness)
