"""The queries of a place, as they were at a moment: a recording, an event log, or a running exporter."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.errors import UserError
from ledgerops.fleet import Fleet
from ledgerops.progress import BadRecord, parse_instant
from ledgerops.records import Observation
from ledgerops.sources import open_source
from ledgerops.view import FRESHNESS, View


def look(
    place: str, query: str | None = None, at: str | None = None, freshness: float | None = None
) -> tuple[list[View], float, str]:
    """The queries of a place, the instant that is looked at, and the place's name. Raises UserError for none."""
    moment = None
    if at is not None and (moment := parse_instant(at)) is None:
        raise UserError(f"--at {at}: not a time; write it like 2026-11-21T08:30:00Z")
    source = open_source(place)
    fleet, seen = _read(source.observations, moment)
    if not fleet.queries or seen is None:
        raise UserError(f"no query in {source.name}{f' before {at}' if at else ''}; nothing can be said")
    if query is not None and query not in fleet.queries:
        raise UserError(f"no query {query!r} in {source.name}; there are {', '.join(sorted(fleet.queries))}")
    now = moment if moment is not None else max(seen, source.now or seen)
    views = list(_each(fleet, now, query))
    for view in views:
        view.freshness = freshness or FRESHNESS
    return views, now, source.name


def _read(observations: Iterator[Observation], moment: float | None) -> tuple[Fleet, float | None]:
    fleet, newest, bad = Fleet(Diagnoser), None, 0
    for seen in observations:
        if moment is not None and seen.at > moment:
            break
        newest = seen.at if newest is None else max(newest, seen.at)
        try:
            fleet.ingest(seen)
        except BadRecord:
            bad += 1
    if bad:
        print(f"ledgerops: {bad} records could not be read; passed over", file=sys.stderr)
    return fleet, newest


def _each(fleet: Fleet, now: float, query: str | None) -> Iterator[View]:
    """By name; of a query that has ended, as it was at its end."""
    for name in sorted(fleet.queries):
        if query in (None, name):
            state = fleet.queries[name]
            ended = state.history.ended
            yield fleet.view(state, now if ended is None else min(now, ended.at))
