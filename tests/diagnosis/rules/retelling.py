"""A view's batches told anew, with what the fixture `history` does not say of them."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ledgerops.model.advance import advanced
from ledgerops.model.records import Progress
from ledgerops.signals.query_view import QueryView


def beside_another(view: QueryView, rows: int, heads: bool = True) -> QueryView:
    """The view, whose batches each read so many rows of another source as well, which are all that it has."""

    def fields(place: int, batch: Progress) -> Mapping[str, Any]:
        start, end = ({("orders", "0"): count * rows} if heads else {} for count in (place, place + 1))
        other = replace(batch.sources[0], name="orders", rows=rows, start=start, end=end, latest=end)
        return {"sources": (*batch.sources, other), "rows": batch.rows + rows}

    return retold(view, fields)


def doubled(view: QueryView) -> QueryView:
    """The view, whose batches read as much of another source as of the one that it has, and leave as much."""

    def fields(_: int, batch: Progress) -> Mapping[str, Any]:
        [one] = batch.sources
        start, end, latest = (
            {("orders", number): at for (_, number), at in offsets.items()}
            for offsets in (one.start, one.end, one.latest)
        )
        other = replace(one, name="orders", start=start, end=end, latest=latest)
        return {"sources": (one, other), "rows": 2 * batch.rows}

    return retold(view, fields)


def retold(view: QueryView, fields: Callable[[int, Progress], Mapping[str, Any]]) -> QueryView:
    """A view of the same history in which `fields(place, batch)` are replaced in each batch."""
    past = view.history
    past.batches = deque((replace(each, **fields(n, each)) for n, each in enumerate(past.batches)), past.batches.maxlen)
    past.watermark = past.newest_event = None
    for batch in past.batches:
        past.watermark = advanced(past.watermark, batch.watermark, batch.started)
        past.newest_event = advanced(past.newest_event, batch.event_time_max, batch.started)
    return QueryView(past, view.now, view.hosts, view.others, view.freshness)
