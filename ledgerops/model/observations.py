"""Records from the data of our own observations: tasks, files, tables, plan, host, observer, offsets and batch_running.

Ledgerops writes them itself, so the fields are those of the records. Anything missing or of the wrong type is a
BadRecord: a recording may be cut, edited or of another version. Spark's progress has a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from ledgerops.model.offsets import by_topic
from ledgerops.model.records import (
    BatchFiles,
    DriverCode,
    Executor,
    ExecutorShare,
    FilesRead,
    Heads,
    Host,
    Observation,
    Observer,
    Plan,
    Process,
    RemovedExecutor,
    Running,
    StageSummary,
    TableCommit,
    TableRead,
    Tables,
    TaskSummary,
)
from ledgerops.model.spark_progress import MAX_COUNT, BadRecord

Record = TypeVar("Record")


def decode(seen: Observation) -> Any:
    """The record in one of our own observations; None for Spark's events. Raises BadRecord."""
    match seen.kind:
        case "host":
            return decode_host(seen.data, seen.at)
        case "observer":
            return decode_observer(seen.data, seen.at)
        case "plan":
            return decode_plan(seen.data)
        case "tasks":
            return decode_tasks(seen.data)
        case "files":
            return decode_files(seen.data)
        case "tables":
            return decode_tables(seen.data, seen.at)
        case "driver_code":
            return _build(DriverCode, seen.data, at=seen.at)
        case "offsets":
            return decode_heads(seen.data, seen.at)
        case "batch_running":
            return decode_running(seen.data, seen.at)
    return None


def decode_tasks(data: Mapping[str, Any]) -> TaskSummary:
    """The stages of one batch, with each executor's share. Raises BadRecord."""
    stages = tuple(
        _build(
            StageSummary,
            stage,
            executors={
                str(name): _build(ExecutorShare, share) for name, share in _object(stage.get("executors", {})).items()
            },
        )
        for stage in _list(data.get("stages", []))
    )
    return _build(TaskSummary, data, stages=stages)


def decode_files(data: Mapping[str, Any]) -> BatchFiles:
    """The files that each source of one batch read. Raises BadRecord."""
    sources = _object(data.get("sources", {}))
    return _build(BatchFiles, data, sources={str(name): _build(FilesRead, read) for name, read in sources.items()})


def decode_tables(data: Mapping[str, Any], at: float) -> Tables:
    """The tables that a run reads and writes, at `at` (epoch seconds). Raises BadRecord."""
    sources = _object(data.get("sources", {}))
    return _build(
        Tables,
        data,
        at=at,
        sources={str(name): _build(TableRead, read) for name, read in sources.items()},
        commits=tuple(_build(TableCommit, commit) for commit in _list(data.get("commits", []))),
        errors={str(name): str(reason) for name, reason in _object(data.get("errors", {})).items()},
    )


def decode_plan(data: Mapping[str, Any]) -> Plan:
    """The plan of a run, durations in seconds. Raises BadRecord, also for a negative trigger interval."""
    plan = _build(
        Plan,
        data,
        watermarks={str(name): _float(delay) for name, delay in _object(data.get("watermarks", {})).items()},
        keys=_texts(data.get("keys") or ()),
        without_timeout=_texts(data.get("without_timeout") or ()),
        rate_limits=_named(data.get("rate_limits", {})),
        state_settings=None if (settings := data.get("state_settings")) is None else _named(settings),
    )
    if (plan.trigger_interval or 0.0) < 0:
        raise BadRecord(f"negative trigger interval: {plan.trigger_interval!r:.40}")
    return plan


def decode_running(data: Mapping[str, Any], at: float) -> Running:
    """The batch that was running at `at` (epoch seconds). Raises BadRecord."""
    return _build(Running, data, at=at)


def decode_host(data: Mapping[str, Any], at: float) -> Host:
    """The driver's machine, its processes and its executors at `at` (epoch seconds). Raises BadRecord."""
    return _build(
        Host,
        data,
        at=at,
        processes=tuple(_build(Process, each) for each in _list(data.get("processes", []))),
        executors=tuple(_build(Executor, each) for each in _list(data.get("executors", []))),
        removed_executors=tuple(_build(RemovedExecutor, each) for each in _list(data.get("removed_executors", []))),
    )


def decode_observer(data: Mapping[str, Any], at: float) -> Observer:
    """What ledgerops counted about itself until `at` (epoch seconds). Raises BadRecord."""
    errors = _object(data.get("collector_errors", {}))
    return _build(Observer, data, at=at, collector_errors={str(name): _int(count) for name, count in errors.items()})


def decode_heads(data: Mapping[str, Any], at: float) -> Heads:
    """What a source itself reported at `at` (epoch seconds): offsets by (topic, partition), retention by topic.

    Raises BadRecord.
    """
    return _build(
        Heads,
        data,
        at=at,
        latest=by_topic(data.get("latest")) or {},
        earliest=by_topic(data.get("earliest")) or {},
        retention_seconds={
            str(topic): _float(seconds) for topic, seconds in _object(data.get("retention_seconds", {})).items()
        },
        retention_bytes={str(topic): _int(size) for topic, size in _object(data.get("retention_bytes", {})).items()},
    )


def _float(value: object) -> float:
    # not (… <= …) refuses NaN, too
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_COUNT:
        raise BadRecord(f"expected a number, got {value!r:.40}")
    return float(value)


def _int(value: object) -> int:
    return int(_float(value))


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise BadRecord(f"expected text, got {value!r:.40}")
    return value


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadRecord(f"expected true or false, got {value!r:.40}")
    return value


READERS: dict[object, Callable[[object], object]] = {float: _float, int: _int, str: _str, bool: _bool}


@cache
def _types(record: type) -> dict[str, tuple[object, bool]]:
    """By field its type, and whether it may be None. One of several words is a text: a newer version may have more."""
    found: dict[str, tuple[object, bool]] = {}
    for name, hint in get_type_hints(record).items():
        optional = NoneType in get_args(hint)
        kind = get_args(hint)[0] if optional else hint
        found[name] = str if get_origin(kind) is Literal else kind, optional
    return found


def _build(record: type[Record], data: object, **given: object) -> Record:
    """A record from the fields of the same names; fields in `given` are taken as they are, unknown keys are ignored.

    Raises BadRecord, and KeyError for a field of a type that has no reader.
    """
    source = _object(data)
    values: dict[str, object] = {}
    for field in fields(record):  # type: ignore[arg-type]
        if field.name in given:
            values[field.name] = given[field.name]
            continue
        value = source.get(field.name)
        kind, optional = _types(record)[field.name]  # type: ignore[arg-type]
        if value is None and (optional or field.default is not MISSING):
            values[field.name] = None if optional else field.default
        elif value is None:
            raise BadRecord(f"no {field.name}")
        else:
            values[field.name] = READERS[kind](value)
    return record(**values)


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadRecord(f"expected an object, got {value!r:.40}")
    return value


def _named(value: object) -> dict[str, str]:
    return {str(name): str(each) for name, each in _object(value).items()}


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise BadRecord(f"expected a list, got {value!r:.40}")
    return tuple(str(each) for each in value)


def _list(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list | tuple):
        raise BadRecord(f"expected a list, got {value!r:.40}")
    return [_object(each) for each in value]
