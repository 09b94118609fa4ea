"""Records from the data of our own observations: tasks, files, tables, plan, host, observer, offsets and batch_running.

Ledgerops writes them itself, so the fields are those of the records, and their annotations say how each is read.
Anything missing or of the wrong type is a BadRecord: a recording may be cut, edited or of another version. Spark's
progress has a module of its own.
"""

import collections.abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from ledgerops.model.offsets import by_topic
from ledgerops.model.records import (
    MAX_COUNT,
    BatchFiles,
    DriverCode,
    Heads,
    Host,
    Observation,
    ObservationKind,
    Observer,
    Offsets,
    Plan,
    Running,
    Stacks,
    Tables,
    TaskSummary,
)
from ledgerops.model.spark_progress import BadRecord

Record = TypeVar("Record")
Reader = Callable[[object], object]

RECORDS: Mapping[ObservationKind, type] = {
    "host": Host,
    "observer": Observer,
    "plan": Plan,
    "tasks": TaskSummary,
    "files": BatchFiles,
    "tables": Tables,
    "driver_code": DriverCode,
    "stacks": Stacks,
    "offsets": Heads,
    "batch_running": Running,
}


def decode(seen: Observation) -> Any:
    """The record in one of our own observations; None for Spark's events. Raises BadRecord."""
    record = RECORDS.get(seen.kind)
    return None if record is None else build(record, seen.data, at=seen.at)


def build(record: type[Record], data: object, **given: object) -> Record:
    """A record from the fields of the same names; fields in `given` are taken as they are, unknown keys are ignored. A
    list or an object that is absent is empty. Raises BadRecord, also for a negative trigger interval."""
    source = _object(data)
    values: dict[str, object] = {}
    for name, read, absent in _fields(record):  # type: ignore[arg-type]
        if name in given:
            values[name] = given[name]
        elif (value := source.get(name)) is not None:
            values[name] = read(value)
        elif absent is MISSING:
            raise BadRecord(f"no {name}")
        else:
            values[name] = absent
    made = record(**values)
    if isinstance(made, Plan) and (made.trigger_interval or 0.0) < 0:
        raise BadRecord(f"negative trigger interval: {made.trigger_interval!r:.40}")
    return made


@cache
def _fields(record: type) -> Sequence[tuple[str, Reader, object]]:
    """The name of each field, how it is read, and what it is where it is absent: MISSING if it must be there."""
    hints, found = get_type_hints(record), []
    for field in fields(record):
        hint = hints[field.name]
        optional = NoneType in get_args(hint)
        kind = get_args(hint)[0] if optional else hint
        absent = None if optional else EMPTY.get(get_origin(kind), field.default)
        found.append((field.name, _reader(kind), absent))
    return found


def _reader(hint: Any) -> Reader:
    """The reader of a type: a number, text, a list or an object of such, or another record."""
    if hint in READERS:
        return READERS[hint]
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _str  # a newer version may have more words
    if origin is tuple:
        item = _reader(parts[0])
        return lambda value: tuple([item(each) for each in _list(value)])
    if origin is collections.abc.Mapping:
        entry = _reader(parts[1])
        return lambda value: {str(name): entry(each) for name, each in _object(value).items()}
    return lambda value: build(hint, value)


def _float(value: object) -> float:
    # not (… <= …) refuses NaN, too
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_COUNT:
        raise BadRecord(f"expected a number, got {value!r:.40}")
    return float(value)


def _only(kind: type | UnionType, expected: str) -> Callable[[object], Any]:
    """The reader that takes a value of this type as it is."""

    def read(value: object) -> Any:
        if not isinstance(value, kind):
            raise BadRecord(f"expected {expected}, got {value!r:.40}")
        return value

    return read


def _offsets(value: object) -> Offsets:
    return by_topic(value) or {}


_str, _bool = _only(str, "text"), _only(bool, "true or false")
_object, _list = _only(Mapping, "an object"), _only(list | tuple, "a list")
EMPTY: Mapping[Any, object] = {tuple: (), collections.abc.Mapping: {}}  # the latter is never written to
READERS: Mapping[Any, Reader] = {
    float: _float,
    int: lambda value: int(_float(value)),
    str: _str,
    bool: _bool,
    Offsets: _offsets,
}
