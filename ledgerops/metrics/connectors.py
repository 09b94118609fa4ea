"""What sources and sinks report of themselves: numbers that only their authors define."""

from collections.abc import Callable, Iterator
from math import isfinite

from ledgerops.metrics.model import Metric, Series
from ledgerops.model.records import Progress
from ledgerops.model.sources import NAMED
from ledgerops.signals.query_view import QueryView

MAX_VALUES = 50  # of one query and family: a connector may report a number for each of its shards


def _source_values(batch: Progress) -> Iterator[tuple[tuple[str, ...], object]]:
    for source in batch.sources:
        for name, value in source.metrics.items():
            if name not in NAMED[source.kind].understood:
                yield (source.name, name), value


def _numbers(values: Callable[[Progress], Iterator[tuple[tuple[str, ...], object]]]) -> Callable[[QueryView], Series]:
    """The first MAX_VALUES of some values of the newest batch that are numbers, or their text."""

    def read(view: QueryView) -> Series:
        found: dict[tuple[str, ...], float] = {}
        for labels, value in values(view.last) if view.last is not None else ():
            number = _number(value)
            if number is not None and len(found) < MAX_VALUES:
                found[labels] = number
        return found

    return read


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


SOURCE_VALUE: Metric[QueryView] = Metric("ledgerops_source_reported_value",
    "What a source reports of the newest batch in `metrics` of its progress, by name, in its own units; without what "
    "other families say.",
    labels=("source", "kind"), read=_numbers(_source_values))  # fmt: skip
SINK_VALUE: Metric[QueryView] = Metric("ledgerops_sink_reported_value",
    "What the sink reports of the newest batch in `metrics` of its progress, by name, in its own units.",
    labels=("kind",),
    read=_numbers(lambda batch: (((name,), value) for name, value in batch.sink_metrics.items())))  # fmt: skip
METRICS = (SOURCE_VALUE, SINK_VALUE)
