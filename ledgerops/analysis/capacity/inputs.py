"""The queries of a place, as they were at a moment: a recording, an event log, or a running exporter."""

from collections.abc import Iterator, Mapping

from ledgerops.analysis.inputs import open_source
from ledgerops.analysis.session import DEFAULTS, warn_of_bad_records
from ledgerops.config import Config
from ledgerops.runtime.registry import QueryState
from ledgerops.runtime.replay import Replay
from ledgerops.signals.query_view import QueryView


def read_views(
    place: str, query: str | None = None, at: float | None = None, freshness: float | None = None, when: str = "",
    config: Config = DEFAULTS,
) -> tuple[list[QueryView], float, str]:  # fmt: skip
    """The queries of a source, the instant that is analysed, and the place's name. Raises UserError for none. `when` is
    how the caller put the instant `at`, for that message. `freshness` is the objective (seconds); without it that of an
    exporter counts, then that of the settings `config`."""
    source, replay = open_source(place), Replay()
    for seen in source.observations:
        replay.more = at is not None and seen.at > at
        if replay.more:
            break
        replay.take(seen)
    if replay.bad:
        warn_of_bad_records(replay.bad, source.name)
    queries = replay.named(query, source.name, when)
    newest = max(replay.at or 0.0, source.now or 0.0)
    now = newest if at is None or (at > newest and not replay.more) else at
    objective = freshness or source.freshness or config.freshness_objective_seconds
    found = [view.at(view.now, objective) for view in views(replay, queries, now)]
    return found, now, source.name


def views(replay: Replay, queries: Mapping[str, QueryState], now: float) -> Iterator[QueryView]:
    """By name; of a query that has ended, as it was at its end."""
    for name in sorted(queries):
        ended = queries[name].history.ended
        yield replay.registry.view(queries[name], now if ended is None else min(now, ended.at))
