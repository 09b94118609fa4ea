"""Spark's progress JSON -> Progress. The only module that knows Spark's field names.

Two dialects are read: the listener's JSON (Spark 3.5 to 4.3) and the event log's, which has no top-level
`numInputRows`, keeps empty maps, and writes offsets as JSON text inside strings.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ledgerops.model.offsets import decoded
from ledgerops.model.records import MAX_COUNT, NOTHING_REPORTED, Progress, SourceProgress, StateOperator
from ledgerops.model.sources import NAMED, kind_of, offsets_of
from ledgerops.model.sources.kind import Position

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
MAX_EPOCH_SECONDS = 253_402_300_799.0  # the last second that a date can represent: a record may claim any time
# a year with a sign or with more than four digits, and the year 0: `datetime` takes 1 to 9999 only
FAR_YEAR = re.compile(r"([+-]\d{4,12}|\d{5,12}|0000)(?=-\d\d-\d\d)")
CYCLE_YEARS, CYCLE_BEGINS, CYCLE_SECONDS = 400, 2000, 146_097 * 86_400.0  # after which the Gregorian calendar repeats
SNAPSHOT = "SnapshotLastUploaded."  # its keys change from batch to batch, so they cannot be metrics
SUBSCRIBED = re.compile(r"Subscribe\[(.*?)\]")
NOWHERE = Position()
MAX_DESCRIPTIONS = 1000  # of sources, of which the short names are remembered
HASH = re.compile(r"[$@][0-9a-f@$]+$")


class BadRecord(ValueError):
    """The JSON is not a progress record; the message says what is missing."""


MAX_REST_SHARE = 0.1  # of the offsets, that the rows may differ from a multiple of them
# of real-time mode, as Databricks documents them; Spark itself reports none
LATENCY_KINDS = {
    "processingLatencyMs": "processing",
    "sourceQueuingLatencyMs": "source_queue",
    "e2eLatencyMs": "end_to_end",
}
QUANTILE = re.compile(r"[Pp]\d{1,2}")


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
    repeated = any(source.times_read > 1 for source in sources)
    return Progress(
        query=query_name(data.get("name"), query_id),
        query_id=query_id,
        run_id=run_id,
        batch_id=batch_id,
        started=started,
        duration=max(RESOLUTION_SECONDS, _seconds(durations.get(WHOLE, data.get("batchDuration")))),
        rows=sum(source.rows for source in sources) if rows is None or repeated else rows,
        phases=_phases(durations),
        sources=sources,
        operators=_operators(data.get("stateOperators")),
        sink=HASH.sub("", str(sink.get("description") or "")),
        output_rows=output_rows,
        watermark=_watermark(event_time.get("watermark")),
        event_time_min=parse_instant(event_time.get("min")),
        event_time_avg=parse_instant(event_time.get("avg")),
        event_time_max=parse_instant(event_time.get("max")),
        observed={
            str(name): row for name, row in _mapping(data.get("observedMetrics")).items() if isinstance(row, dict)
        },
        record_latencies=_record_latencies(data.get("rtmMetrics") or data.get("latencies")),
        sink_metrics=_texts(sink.get("metrics")),
    )


def _record_latencies(value: object) -> dict[tuple[str, ...], float]:
    """`{"e2eLatencyMs": {"P99": 4}}` -> `{("end_to_end", "0.99"): 0.004}`; what is no such thing is left out."""
    if not isinstance(value, Mapping):
        return {}
    return {
        (kind, f"{int(quantile[1:]) / 100:g}"): milliseconds / 1000
        for name, kind in LATENCY_KINDS.items()
        for quantile, milliseconds in _mapping(value.get(name)).items()
        if isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool) and milliseconds >= 0
        if QUANTILE.fullmatch(str(quantile))
    }


def query_name(name: object, query_id: str) -> str:
    """The query's name, or a short form of its id when it has none: ids are stable across restarts."""
    return sys.intern(name) if isinstance(name, str) and name else f"query-{query_id[:8]}"


def parse_instant(text: object) -> float | None:
    """ISO 8601 text -> seconds since the epoch; None when it is none. Text without a zone is UTC. Event times may be of
    any year: milliseconds that are read as seconds are in the year 58865, written +58865."""
    if not isinstance(text, str):
        return None
    cycles, within = 0, text
    far = FAR_YEAR.match(text)
    if far is not None:  # the same day of a year that `datetime` knows: the calendar repeats itself
        cycles, year = divmod(int(far[1]) - CYCLE_BEGINS, CYCLE_YEARS)
        within = f"{year + CYCLE_BEGINS}{text[far.end() :]}"
    try:
        moment = datetime.fromisoformat(within)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp() + cycles * CYCLE_SECONDS
    except (OverflowError, ValueError):
        return None


def year_of(at: float) -> int:
    """The year of an instant, however far it is from now."""
    cycles = at // CYCLE_SECONDS
    return datetime.fromtimestamp(at - cycles * CYCLE_SECONDS, UTC).year + int(cycles) * CYCLE_YEARS


def format_instant(at: float) -> str:
    """Seconds since the epoch -> ISO 8601 UTC with milliseconds and `Z`, as Spark writes it."""
    moment = datetime.fromtimestamp(min(max(at, 0.0), MAX_EPOCH_SECONDS), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _sources(values: object) -> tuple[SourceProgress, ...]:
    sources: list[SourceProgress] = []
    names = defaultdict[str, int](int)
    for value in values if isinstance(values, list) else ():
        if not isinstance(value, dict):
            continue
        description = sys.intern(str(value.get("description") or ""))
        reached = decoded(value.get("endOffset"))
        kind = kind_of(description, reached)
        short = _label(kind.name, description)
        position = NOWHERE if reached is None else kind.position(reached, short)
        start = offsets_of(value.get("startOffset"), kind, short)
        end = position.offsets if position is not None else {}
        # mostly equal; one object for both: histories keep many of them
        equal = value.get("latestOffset") == value.get("endOffset")
        latest = end if equal else offsets_of(value.get("latestOffset"), kind, short)
        latest = end if latest == end else latest
        topics = sorted({topic for topic, _ in end or latest})
        name = _unique(",".join(topics[:3]) + (",..." if len(topics) > 3 else "") or short, names)
        metrics = _texts(value.get("metrics"))
        rows = _count(value.get("numInputRows")) or 0
        table = position.table if position is not None else None
        left = kind.left(metrics, reached)
        left = NOTHING_REPORTED if left == NOTHING_REPORTED else left
        source = SourceProgress(
            name, description, rows, start, end, latest, metrics, kind=kind.name, table=table, reported=left,
            known_form=position is not None,
        )  # fmt: skip
        times = times_read(source)
        sources.append(source if times == 1 else replace(source, rows=source.read, times_read=times))
    return tuple(sources)


def times_read(source: SourceProgress) -> int:
    """How often a batch read its rows of Kafka, where each offset is a row: once for each action in `foreachBatch`.

    A further action may read only a part, such as `show()`; a factor that is not nearly whole has another reason. Of a
    new partition only the end is told, so its rows have no offsets to be compared with.
    """
    if source.kind != "kafka" or source.read <= 0 or not source.end.keys() <= source.start.keys():
        return 1
    times = round(source.rows / source.read)
    return times if times > 1 and abs(source.rows - times * source.read) <= MAX_REST_SHARE * source.read else 1


@lru_cache(maxsize=MAX_DESCRIPTIONS)
def _label(kind: str, description: str) -> str:
    return sys.intern(NAMED[kind].label(description) or _short_name(description))


def _short_name(description: str) -> str:
    subscribed = SUBSCRIBED.search(description)
    if subscribed:
        return subscribed.group(1).replace(" ", "")
    plain = HASH.sub("", description).split("[", 1)[0].rsplit(".", 1)[-1].strip()
    return sys.intern(plain or "source")


def _operators(values: object) -> tuple[StateOperator, ...]:
    operators: list[StateOperator] = []
    names = defaultdict[str, int](int)
    for value in values if isinstance(values, list) else ():
        if not isinstance(value, dict):
            continue
        metrics = _mapping(value.get("customMetrics")).items()
        numbers = {sys.intern(key): number for key, raw in metrics if (number := _number(raw)) is not None}
        snapshots = {key: int(numbers.pop(key)) for key in list(numbers) if key.startswith(SNAPSHOT)}
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
                stores=_count(value.get("numStateStoreInstances")),
                custom=numbers,
                snapshot_versions={key[len(SNAPSHOT) :]: version for key, version in snapshots.items()},
            )
        )
    return tuple(operators)


def _unique(name: str, taken: defaultdict[str, int]) -> str:
    taken[name] += 1
    return sys.intern(name if taken[name] == 1 else f"{name}-{taken[name]}")


def _phases(durations: Mapping[str, Any]) -> dict[str, float]:
    phases: dict[str, float] = {}
    for key, value in durations.items():
        number = _number(value)
        if key == WHOLE or number is None or number < 0:
            continue
        name = PHASES.get(key) or sys.intern(re.sub(r"(?<!^)(?=[A-Z])", "_", str(key)).lower())
        phases[name] = phases.get(name, 0.0) + number / 1000
    return phases


def _texts(value: object) -> dict[str, str]:
    return {sys.intern(str(key)): str(text) for key, text in _mapping(value).items()}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
    if type(value) is not int and type(value) is not float:  # true and false are none
        return None
    return value if -MAX_COUNT <= value <= MAX_COUNT else None  # NaN and infinity are not, either


def _count(value: object) -> int | None:
    """A count that Spark gave; -1 means unknown."""
    number = _number(value)
    return int(number) if number is not None and number >= 0 else None


def _seconds(milliseconds: object) -> float:
    return max(0.0, _number(milliseconds) or 0.0) / 1000


def _watermark(text: object) -> float | None:
    """A watermark is 1970 until it is set, and never before it; an event time of 1970 is one."""
    instant = parse_instant(text)
    return instant if instant is not None and instant > 0 else None
