"""Spark's progress JSON -> Progress. The only module that knows Spark's field names.

Two dialects are read: the listener's JSON (Spark 3.5 to 4.3) and the event log's, which has no top-level
`numInputRows`, keeps empty maps, and writes offsets as JSON text inside strings.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ledgerops.model.records import Offsets, Partition, Progress, SourceProgress, StateOperator

PHASES = {
    "latestOffset": "latest_offset",
    "getOffset": "latest_offset",  # the name that V1 sources use
    "getBatch": "get_batch",
    "queryPlanning": "query_planning",
    "walCommit": "wal_commit",
    "addBatch": "add_batch",
    "commitOffsets": "commit_offsets",
}
WHOLE = "triggerExecution"
RESOLUTION_SECONDS = 0.001  # a batch reported as 0 ms took less than this
TOPICS, PARTITIONS = 200, 10_000  # that are remembered, the latter of each topic
MAX_COUNT = 2.0**63  # nothing that Spark counts or times is beyond it
MAX_EPOCH_SECONDS = 253_402_300_799.0  # the last second that a date can represent: a record may claim any time
UNSET = (None, "null", "None", "")  # PySpark's fromJObject turns a null offset into the words
SNAPSHOT = "SnapshotLastUploaded."  # its keys change from batch to batch, so they cannot be metrics
SUBSCRIBED = re.compile(r"Subscribe\[(.*?)\]")
HASH = re.compile(r"[$@][0-9a-f@$]+$")


class BadRecord(ValueError):
    """The JSON is not a progress record; the message says what is missing."""


def parse_progress(data: Mapping[str, Any]) -> Progress:
    """One record from Spark's JSON (already decoded). Raises BadRecord when it has no run id, batch id or time."""
    if not isinstance(data, Mapping):
        raise BadRecord("not an object")
    run_id, started, batch_id = data.get("runId"), parse_instant(data.get("timestamp")), data.get("batchId")
    if not isinstance(run_id, str) or not run_id:
        raise BadRecord("no runId")
    if not isinstance(batch_id, int) or isinstance(batch_id, bool):
        raise BadRecord("no batchId")
    if started is None:
        raise BadRecord("no timestamp")
    query_id = str(data.get("id") or run_id)
    durations = _mapping(data.get("durationMs"))
    event_time = _mapping(data.get("eventTime"))
    sink = _mapping(data.get("sink"))
    output_rows = _count(sink.get("numOutputRows"))
    sources = _sources(data.get("sources"))
    rows = _count(data.get("numInputRows"))
    return Progress(
        query=query_name(data.get("name"), query_id),
        query_id=query_id,
        run_id=run_id,
        batch_id=batch_id,
        started=started,
        duration=max(RESOLUTION_SECONDS, _seconds(durations.get(WHOLE, data.get("batchDuration")))),
        rows=sum(source.rows for source in sources) if rows is None else rows,
        phases=_phases(durations),
        sources=sources,
        operators=_operators(data.get("stateOperators")),
        sink=HASH.sub("", str(sink.get("description") or "")),
        output_rows=output_rows,
        watermark=_after_epoch(event_time.get("watermark")),
        event_time_min=_after_epoch(event_time.get("min")),
        event_time_avg=_after_epoch(event_time.get("avg")),
        event_time_max=_after_epoch(event_time.get("max")),
        observed={
            str(name): row for name, row in _mapping(data.get("observedMetrics")).items() if isinstance(row, Mapping)
        },
    )


def query_name(name: object, query_id: str) -> str:
    """The query's name, or a short form of its id when it has none: ids are stable across restarts."""
    return sys.intern(name) if isinstance(name, str) and name else f"query-{query_id[:8]}"


def parse_instant(text: object) -> float | None:
    """ISO 8601 text -> seconds since the epoch; None when it is none. Text without a zone is UTC."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.timestamp()
    except (OverflowError, ValueError):
        return None


def format_instant(at: float) -> str:
    """Seconds since the epoch -> ISO 8601 UTC with milliseconds and `Z`, as Spark writes it."""
    moment = datetime.fromtimestamp(min(max(at, 0.0), MAX_EPOCH_SECONDS), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_offsets(value: object, source: str) -> Offsets:
    """Offsets of any source as {(topic, partition): offset}; empty when they are not plain numbers.

    Understood: Kafka's `{"topic": {"0": 5}}`, a bare number, the file source's `{"logOffset": 5}`, a flat object of
    numbers, and each of them as JSON text. Others (Delta's mixed object, say) carry no countable distance.
    """
    if isinstance(value, str):
        if value in UNSET:
            return {}
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if _is_whole(value):
        return {(source, "0"): value}  # type: ignore[dict-item]
    if not isinstance(value, Mapping) or not value:
        return {}
    if all(_is_whole(each) for each in value.values()):
        return {(source, "0" if key == "logOffset" else sys.intern(str(key))): each for key, each in value.items()}
    offsets: dict[Partition, int] = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, Mapping):
            return {}
        known = _partitions(str(topic))
        # a topic may have hundreds, in every batch
        offsets.update([(known[each], at) for each, at in partitions.items() if type(at) is int or _is_whole(at)])
    return offsets


class _Partitions(dict[object, Partition]):
    """One object for each partition of a topic: histories hold it many times a batch, and dicts find it sooner."""

    def __init__(self, topic: str) -> None:
        self.topic = sys.intern(topic)

    def __missing__(self, partition: object) -> Partition:
        if len(self) >= PARTITIONS:
            self.clear()
        found = self[partition] = self.topic, sys.intern(str(partition))
        return found


_partitions = lru_cache(maxsize=TOPICS)(_Partitions)


def _sources(values: object) -> tuple[SourceProgress, ...]:
    sources: list[SourceProgress] = []
    names: list[str] = []
    for value in values if isinstance(values, Sequence) and not isinstance(values, str) else ():
        if not isinstance(value, Mapping):
            continue
        description = str(value.get("description") or "")
        short = _short_name(description)
        start = parse_offsets(value.get("startOffset"), short)
        end = parse_offsets(value.get("endOffset"), short)
        # mostly equal; one object for both: histories keep many of them
        equal = value.get("latestOffset") == value.get("endOffset")
        latest = end if equal else parse_offsets(value.get("latestOffset"), short)
        latest = end if latest == end else latest
        topics = sorted({topic for topic, _ in end or latest})
        name = _unique(",".join(topics[:3]) + (",..." if len(topics) > 3 else "") or short, names)
        metrics = {str(key): str(text) for key, text in _mapping(value.get("metrics")).items()}
        rows = _count(value.get("numInputRows")) or 0
        sources.append(SourceProgress(name, description, rows, start, end, latest, metrics))
    return tuple(sources)


def _short_name(description: str) -> str:
    subscribed = SUBSCRIBED.search(description)
    if subscribed:
        return subscribed.group(1).replace(" ", "")
    plain = HASH.sub("", description).split("[", 1)[0].rsplit(".", 1)[-1].strip()
    return sys.intern(plain or "source")


def _operators(values: object) -> tuple[StateOperator, ...]:
    operators: list[StateOperator] = []
    names: list[str] = []
    for value in values if isinstance(values, Sequence) and not isinstance(values, str) else ():
        if not isinstance(value, Mapping):
            continue
        custom: dict[str, float] = {}
        snapshots: dict[str, int] = {}
        for key, raw in _mapping(value.get("customMetrics")).items():
            number = _number(raw)
            if number is None:
                continue
            if key.startswith(SNAPSHOT):
                snapshots[key.removeprefix(SNAPSHOT)] = int(number)
            else:
                custom[sys.intern(key)] = number
        operators.append(
            StateOperator(
                name=_unique(str(value.get("operatorName") or "operator"), names),
                rows=_count(value.get("numRowsTotal")) or 0,
                updated=_count(value.get("numRowsUpdated")) or 0,
                removed=_count(value.get("numRowsRemoved")) or 0,
                update_seconds=_seconds(value.get("allUpdatesTimeMs")),
                removal_seconds=_seconds(value.get("allRemovalsTimeMs")),
                commit_seconds=_seconds(value.get("commitTimeMs")),
                memory_bytes=_count(value.get("memoryUsedBytes")) or 0,
                dropped_rows=_count(value.get("numRowsDroppedByWatermark")) or 0,
                shuffle_partitions=_count(value.get("numShufflePartitions")),
                custom=custom,
                snapshot_versions=snapshots,
            )
        )
    return tuple(operators)


def _unique(name: str, taken: list[str]) -> str:
    taken.append(name)
    count = taken.count(name)
    return sys.intern(name if count == 1 else f"{name}-{count}")


def _phases(durations: Mapping[str, Any]) -> dict[str, float]:
    phases: dict[str, float] = {}
    for key, value in durations.items():
        number = _number(value)
        if key == WHOLE or number is None or number < 0:
            continue
        name = PHASES.get(key) or sys.intern(re.sub(r"(?<!^)(?=[A-Z])", "_", str(key)).lower())
        phases[name] = phases.get(name, 0.0) + number / 1000
    return phases


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= MAX_COUNT else None  # NaN and infinity are not, either


def _count(value: object) -> int | None:
    """A count that Spark gave; -1 means unknown."""
    number = _number(value)
    return int(number) if number is not None and number >= 0 else None


def _seconds(milliseconds: object) -> float:
    return max(0.0, _number(milliseconds) or 0.0) / 1000


def _after_epoch(text: object) -> float | None:
    """An event-time instant; 1970 means 'not set yet'."""
    instant = parse_instant(text)
    return instant if instant is not None and instant > 0 else None
