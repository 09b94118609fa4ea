"""When rows arrived in the topics that a query reads: by their heads, or by its batches where there are none."""

from collections.abc import Iterator
from typing import NamedTuple

from ledgerops.model.head_table import MIN_POINTS
from ledgerops.model.history import History
from ledgerops.signals.query_view import QueryView


class Arrival(NamedTuple):
    """When rows of an input were seen, and from when on more could be: a folder is not looked at while a batch runs."""

    at: float
    looked: float


def is_only_input(view: QueryView, topic: str) -> bool:
    """Whether no other topic is known in the driver: several that stop together are a night, or a system at rest; and
    whether nobody else has seen this one go on."""
    here = last_moves(view.history)
    return set(here) == {topic} and not any(
        each != topic or at > here[topic] for other in view.others for each, at in last_moves(other).items()
    )


def known_until(history: History, now: float) -> float:
    """Heads are known up to the newest batch, the newest answer of the source, or the newest word of being idle."""
    answered = next((heads.at for heads in reversed(history.heads) if heads.error is None and heads.at <= now), 0.0)
    return min(now, max(answered, heard_at(history)))


def heard_at(history: History) -> float:
    """When the query itself last got an answer of its source: with its newest batch, or when it was last seen idle."""
    began = history.last.started if history.last is not None else 0.0
    return max(began, (history.last_seen or 0.0) if history.idle_since is not None else 0.0)


def last_moves(history: History) -> dict[str, float]:
    """When the heads of each topic that is read had last grown. Two equal heads are the ends of a quiet stretch."""
    read = {topic for source in history.last.sources for topic, _ in source.latest} if history.last else set()
    found: dict[str, float] = {}
    for (topic, _), (heads, times) in history.head_times.items():
        if topic in read and heads:
            at = times[-1]
            if at <= found.get(topic, 0.0):
                continue
            if len(heads) > 1 and heads[-2] == heads[-1]:
                at = max(found.get(topic, 0.0), times[-2])
            found[topic] = at
    return found | {name: moves[-1].at for name, moves in _batches_with_rows(history).items() if moves}


def arrivals(history: History, topic: str) -> list[Arrival]:
    """When a topic's heads had grown, as far back as all of its partitions are known in detail."""
    found: set[float] = set()
    since = 0.0
    for (each, _), (heads, times) in history.head_times.items():
        if each == topic:
            heads, newest = heads[-MIN_POINTS:], times[-MIN_POINTS:]  # before that the table is thinned out
            if len(times) > MIN_POINTS:
                since = max(since, newest[0])
            found.update(at for before, head, at in zip(heads, heads[1:], newest[1:], strict=False) if head > before)
    return [Arrival(at, at) for at in sorted(found) if at >= since] or _batches_with_rows(history).get(topic, [])


def longest_quiet(history: History, topic: str, until: float) -> float:
    """Seconds of the longest stretch that ended by then in which no partition of a topic grew, however long ago: the
    table of heads keeps both ends of the longest. 0 without one, and for a source without heads."""
    common: list[tuple[float, float]] | None = None
    for (each, _), (heads, times) in history.head_times.items():
        if each == topic:
            quiet = [(times[i - 1], times[i]) for i in range(1, len(heads)) if heads[i - 1] == heads[i]]
            common = quiet if common is None else list(_overlaps(common, quiet))
    return max((end - began for began, end in common or () if end <= until), default=0.0)


def _overlaps(some: list[tuple[float, float]], others: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The stretches that two lists of stretches, each in order, have in common."""
    one = other = 0
    while one < len(some) and other < len(others):
        began, end = max(some[one][0], others[other][0]), min(some[one][1], others[other][1])
        if began < end:
            yield began, end
        if some[one][1] < others[other][1]:
            one += 1
        else:
            other += 1


def _batches_with_rows(history: History) -> dict[str, list[Arrival]]:
    """The batches that read rows, by source that does not report its heads, such as a folder of files."""
    without = {source.name for source in history.last.sources if not source.latest} if history.last else set()
    found: dict[str, list[Arrival]] = {name: [] for name in without}
    for batch in history.run if without else ():
        for source in batch.sources:
            if source.rows > 0 and source.name in without:
                found[source.name].append(Arrival(batch.started, batch.ended))
    return found


def others(view: QueryView, topic: str, since: float) -> list[str]:
    """Other topics, of this query or of another one of the driver, that have moved after `since`."""
    found: set[str] = set()
    for history in (view.history, *view.others):
        if history.ended is None:
            found.update(each for each, at in last_moves(history).items() if since < at <= view.now)
    return sorted(found - {topic})
