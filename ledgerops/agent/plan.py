"""What is fixed for a run, read once from the query itself and off the callback. Whatever cannot be read stays None.

The trigger and the plans are Spark's internals, reached through py4j, or on Spark Connect what its client knows.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import orjson

from ledgerops.agent import connect_plan
from ledgerops.agent.plan_text import parse_sink, parse_trigger, parse_watermarks, read_physical
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.sessions import Session
from ledgerops.model.records import Plan
from ledgerops.model.sources import is_limit
from ledgerops.model.sources.delta import has_delta
from ledgerops.model.sources.iceberg import ICEBERG_CLASSES, iceberg_sink
from ledgerops.model.state_settings import state_settings
from ledgerops.runtime.runs import Run, Runs

SUBSCRIPTIONS = {"subscribe", "subscribepattern", "assign"}  # options of a Kafka source, one of which it has
TIMESTAMPS = {"startingtimestamp", "startingoffsetsbytimestamp"}
TEMPORARY = re.compile(r"temporary-[0-9a-f-]{36}")
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
LEAST_SAFE = ("latest", "given", "earliest")  # offsets at which a restart loses rows, may, or repeats them
# of a plan, what a run's batches do not change
FIXED = (
    "app_id", "app_name", "spark_version", "shuffle_partitions", "delta", "trigger", "trigger_interval", "output_mode",
    "sink", "rate_limits", "starting_offsets", "temporary_checkpoint", "state_settings",
)  # fmt: skip
Value = TypeVar("Value")


class PlanReader:
    """Reads the plan of each run when it appears, and again after its first batch: only then is the plan complete."""

    def __init__(self, queue: EventQueue, runs: Runs) -> None:
        self._queue, self._runs = queue, runs
        self._done: dict[str, tuple[bool, Plan]] = {}  # run id -> whether a batch had run, what was read

    def collect(self) -> None:
        """Queues the plan of each run that is new or has ended its first batch since, unless the plan is unchanged."""
        runs = self._runs.runs()
        for run in runs:
            complete = run.last_batch is not None
            was_complete, before = self._done.get(run.run_id, (None, None))
            if was_complete in (complete, True):
                continue
            plan = read_plan(run, before)
            if plan == run.plan or self._queue.put("plan", orjson.dumps(plan), run.query, run.session):
                self._done[run.run_id] = complete, plan
        active = {run.run_id for run in runs}
        self._done = {run_id: read for run_id, read in self._done.items() if run_id in active}


def read_plan(run: Run, before: Plan | None = None) -> Plan:
    """All that can be known now; raises nothing. What is FIXED is taken from the plan that was read `before`."""
    session = run.session
    handle = _attempt(lambda: _handle(run, session))
    execution = _attempt(lambda: _execution(handle)) if handle is not None and session.classic else None
    known: dict[str, Any] = {}
    if before is not None and before.trigger is not None and before.sink is not None:
        known |= {name: getattr(before, name) for name in FIXED}
    else:
        known |= _from_session(session)
        known |= _from_query(execution) if execution is not None else ()
    if execution is not None:
        known |= _attempt(lambda: dict(_from_batch(execution.lastExecution()))) or {}
    elif handle is not None and not session.classic:
        known |= _attempt(lambda: dict(_from_text(connect_plan.explanation(handle)))) or {}
    if known.get("stateful") and known.get("state_settings") is None:
        known["state_settings"] = _attempt(lambda: state_settings(session.setting))
    sent = session.sent_plans.get(run.run_id) or Plan(run.run_id)
    return replace(sent, **{name: value for name, value in known.items() if value is not None})


def _handle(run: Run, session: Session) -> Any:
    """PySpark's handle on the run; None where its query has begun another. Raises what Spark raises."""
    if run.handle is None:
        run.handle = session.spark.streams.get(run.query_id)
    return run.handle if str(run.handle.runId) == run.run_id else None


def _execution(handle: Any) -> Any:
    query = handle._jsq
    return query.streamingQuery() if hasattr(query, "streamingQuery") else query


def _from_text(explained: str) -> Iterator[tuple[str, Any]]:
    """What the server's explanation of a batch says; nothing before the first batch."""
    logical, found, physical = explained.partition(connect_plan.PHYSICAL)
    if found:
        yield "watermarks", parse_watermarks(logical)
        yield from read_physical(physical).items()


def execution_of(run: Run) -> Any:
    """Spark's StreamExecution of a run of a classic session. Raises what Spark raises."""
    return _execution(_handle(run, run.session))


def checkpoint_of(run: Run) -> str | None:
    """The folder of a run's checkpoint as Spark writes it, such as `file:/data/x`; None where it cannot be known."""
    if not run.session.classic:
        return None
    return _attempt(lambda: str(execution_of(run).resolvedCheckpointRoot()))


def batch_session(run: Run) -> str | None:
    """Spark's id of the session in which it runs the batches of a run of a classic session; None before the first."""
    return _attempt(lambda: session_of(execution_of(run).lastExecution()))


def session_of(rows: Any) -> str | None:
    """Spark's id of the session that a data frame of the JVM, or an execution, belongs to."""
    return _attempt(lambda: str(rows.sparkSession().sessionUUID()))


def is_temporary(checkpoint: str) -> bool:
    """Whether Spark made a checkpoint's folder for one run, because the query names none."""
    return TEMPORARY.fullmatch(checkpoint.rstrip("/").rsplit("/", 1)[-1]) is not None


def _from_session(session: Session) -> Iterator[tuple[str, Any]]:
    yield "app_id", _attempt(lambda: session.app_id)
    yield "app_name", _attempt(lambda: session.setting("spark.app.name"))
    yield "spark_version", _attempt(lambda: str(session.spark.version))
    yield "shuffle_partitions", _attempt(lambda: int(session.setting(SHUFFLE_PARTITIONS) or ""))
    yield "delta", _attempt(lambda: has_delta(session.setting))


def _from_query(execution: Any) -> Iterator[tuple[str, Any]]:
    trigger = _attempt(lambda: parse_trigger(execution.trigger().toString()))
    if trigger is not None:
        yield from zip(("trigger", "trigger_interval"), trigger, strict=True)
    yield "output_mode", _attempt(lambda: str(execution.outputMode().toString()).lower())
    yield "sink", _attempt(lambda: sink_text(execution.sink()))
    sources = _attempt(lambda: list(_options(execution.analyzedPlan()))) or []
    yield "rate_limits", rate_limits(sources)
    yield "starting_offsets", starting_offsets(sources)
    yield "temporary_checkpoint", _attempt(lambda: is_temporary(str(execution.resolvedCheckpointRoot())))


def _from_batch(last: Any) -> Iterator[tuple[str, Any]]:
    """What the newest batch's execution says; nothing before the first batch."""
    if last is None:
        return
    yield "shuffle_partitions", _attempt(lambda: int(last.sparkSession().conf().get(SHUFFLE_PARTITIONS)))
    yield "watermarks", _attempt(lambda: parse_watermarks(last.analyzed().toString()))
    physical = _attempt(lambda: str(last.executedPlan().toString()))
    if physical is not None:
        yield from read_physical(physical).items()


def sink_text(sink: Any) -> str:
    """A sink as Spark describes it; an Iceberg table, of which that is the name alone, as `Iceberg[lake.db.orders]`."""
    text = str(sink.toString())
    return iceberg_sink(text) if str(sink.getClass().getName()).startswith(ICEBERG_CLASSES) else parse_sink(text)


def rate_limits(sources: Iterable[Mapping[str, str]]) -> Mapping[str, str]:
    """Of the options of each source those that cap what a batch may read."""
    return {option: value for options in sources for option, value in options.items() if is_limit(option)}


def starting_offsets(sources: Iterable[Mapping[str, str]]) -> str | None:
    """Where a query without a checkpoint begins to read Kafka: the least safe of its sources; None without one."""
    found = set()
    for options in sources:
        lower = {option.lower(): value for option, value in options.items()}
        if lower.keys() & SUBSCRIPTIONS:
            value = "given" if lower.keys() & TIMESTAMPS else lower.get("startingoffsets", "latest").lower()
            found.add(value if value in LEAST_SAFE else "given")
    return next((each for each in LEAST_SAFE if each in found), None)


def _options(analyzed: Any) -> Iterator[dict[str, str]]:
    """The options of each source."""
    leaves = analyzed.collectLeaves()
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        text = _attempt(partial(_v2_options, leaf)) or _attempt(partial(_v1_options, leaf)) or ""
        pairs = (pair.partition("=") for pair in text.split(", "))
        yield {option: value for option, _, value in pairs}


def _v2_options(leaf: Any) -> str:
    return str(leaf.extraOptions().asCaseSensitiveMap().toString())[1:-1]


def _v1_options(leaf: Any) -> str:
    return str(leaf.dataSource().options().mkString(", ")).replace(" -> ", "=")


def _attempt(read: Callable[[], Value]) -> Value | None:
    try:
        return read()
    except Exception:  # another Spark version keeps it elsewhere, or the query has just ended
        return None
