"""A view's batches told anew, with what the fixture `history` does not say of them."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ledgerops.model.advance import advanced
from ledgerops.model.records import Progress
from ledgerops.signals.query_view import QueryView


def retold(view: QueryView, fields: Callable[[int, Progress], Mapping[str, Any]]) -> QueryView:
    """A view of the same history in which `fields(place, batch)` are replaced in each batch."""
    past = view.history
    past.batches = deque((replace(each, **fields(n, each)) for n, each in enumerate(past.batches)), past.batches.maxlen)
    past.watermark = past.newest_event = None
    for batch in past.batches:
        past.watermark = advanced(past.watermark, batch.watermark, batch.started)
        past.newest_event = advanced(past.newest_event, batch.event_time_max, batch.started)
    return QueryView(past, view.now, view.hosts, view.others, view.freshness)
