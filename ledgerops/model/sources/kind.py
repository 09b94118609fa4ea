"""What a kind of source is. Each module of this package describes one or two; `KINDS` has them all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ledgerops.model.offsets import is_whole
from ledgerops.model.records import MAX_COUNT, Left, Offsets, TablePosition

Unit = Literal["rows", "files", "bytes", "seconds", "milliseconds"]
Reported = Mapping[str, str]  # `sources[].metrics`: Spark makes text of all values


@dataclass(frozen=True, slots=True)
class Position:
    """Where a query is in a source: offsets that can be subtracted, or a place in a table. Both empty: neither."""

    offsets: Offsets = field(default_factory=dict)
    table: TablePosition | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """An option of a source that bounds what a batch reads, as it is written in the documentation of the source."""

    option: str
    unit: Unit
    lower: bool = False  # a batch waits until there is so much


@dataclass(frozen=True, slots=True)
class SourceKind:
    """All that the code knows of a kind of source. `position` reads a decoded offset, None where it has another form;
    `left` takes `metrics` and the decoded offset."""

    name: str  # value of the label `kind`
    title: str  # in texts
    descriptions: tuple[str, ...]  # how Spark's description of the source begins, or its class
    position: Callable[[Any, str], Position | None]
    units: tuple[str, ...]  # in which it can be known what is left
    tried: bool  # against the source itself; otherwise only by its documented records
    owns: Callable[[Any], bool] = lambda offset: False  # a decoded offset that only this kind has
    left: Callable[[Reported, Any], Left] = lambda metrics, offset: Left()
    label: Callable[[str], str | None] = lambda description: None  # a better name than the class
    folder: Callable[[str], str | None] = lambda description: None  # tells two of one class apart
    understood: frozenset[str] = frozenset()  # in `metrics`: read by `left`, or repeating the offsets
    limits: tuple[Limit, ...] = ()
    # what the agent finds a table by: the folder of a Delta table, Spark's description of an Iceberg source
    table: Callable[[str], str | None] = lambda description: None
    has_broker: bool = False  # a Kafka broker can be asked for its offsets
    logs_files: bool = False  # the checkpoint names the files of each batch


def has(*names: str) -> Callable[[Any], bool]:
    """Whether a decoded offset is an object with these names."""
    return lambda offset: isinstance(offset, Mapping) and offset.keys() >= set(names)


def numbers(offset: Any, *names: str) -> Sequence[int] | None:
    """The whole numbers of these names in a decoded offset; None where one is missing or is none."""
    values = [offset.get(name) for name in names] if isinstance(offset, Mapping) else []
    found = [value for value in values if is_whole(value)]
    return found if found and len(found) == len(names) else None


def whole(metrics: Reported, name: str) -> int | None:
    """A count that a source reports; None where it does not, or it is negative or no number."""
    value = real(metrics, name)
    return None if value is None else int(value)


def real(metrics: Reported, name: str) -> float | None:
    """A number from 0 up that a source reports; None where it reports no such one."""
    try:
        value = float(metrics.get(name, ""))
    except ValueError:
        return None
    return value if 0 <= value <= MAX_COUNT else None
