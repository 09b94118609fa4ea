"""What is fixed for a run, read once from the query itself and off the callback. Whatever cannot be read stays None.

The trigger and the plans are Spark's internals, reached through py4j: on Spark Connect only the settings are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import orjson

from ledgerops.agent.queue import EventQueue
from ledgerops.agent.sessions import Session
from ledgerops.model.records import Plan
from ledgerops.runtime.runs import Run, Runs

TRIGGERS = {
    "ProcessingTimeTrigger": "processing_time",
    "AvailableNowTrigger": "available_now",
    "OneTimeTrigger": "once",
    "ContinuousTrigger": "continuous",
    "RealTimeTrigger": "real_time",
}
LIMIT = re.compile(r"max\w*per(trigger|batch)|minoffsetspertrigger|maxtriggerdelay", re.IGNORECASE)
WATERMARK = re.compile(r"EventTimeWatermark (?:[0-9a-f-]{36}, )?([^#,\n]+)#\d+[^,\n]*, ([^\n]+)")
DELAY = re.compile(r"([\d.]+) (day|hour|minute|second|millisecond|microsecond)s?")
SECONDS = {"day": 86400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6}
COMPUTED = "_groupingexpression"
SHUFFLE = "hashpartitioning("
EXPRESSION_ID = re.compile(r"#\d+L?(-T\d+ms)?")
STATEFUL = re.compile(
    r"StateStore|StreamingDeduplicate|StreamingSymmetricHashJoin|MapGroupsWithState|TransformWithState"
)
CHECK = "spark.sql.shuffle.partitions"
Value = TypeVar("Value")


class PlanReader:
    """Reads the plan of each run when it appears, and again after its first batch: only then is the plan complete."""

    def __init__(self, queue: EventQueue, runs: Runs) -> None:
        self._queue, self._runs = queue, runs
        self._done: dict[str, bool] = {}  # run id -> whether a batch had run

    def collect(self) -> None:
        """Queues the plan of each run that is new or has ended its first batch since, unless the plan is unchanged."""
        runs = self._runs.runs()
        for run in runs:
            complete = run.last_batch is not None
            if self._done.get(run.run_id) in (complete, True):
                continue
            plan = read_plan(run)
            if plan == run.plan or self._queue.put("plan", orjson.dumps(plan), run.query, run.session):
                self._done[run.run_id] = complete
        on = {run.run_id for run in runs}
        self._done = {run_id: complete for run_id, complete in self._done.items() if run_id in on}


def read_plan(run: Run) -> Plan:
    """All that can be known now; raises nothing."""
    session = run.session
    known: dict[str, Any] = {
        "app_id": _attempt(lambda: session.app_id),
        "app_name": _attempt(lambda: session.setting("spark.app.name")),
        "spark_version": _attempt(lambda: str(session.spark.version)),
        "shuffle_partitions": _attempt(lambda: int(session.setting(CHECK) or "")),
    }
    if session.classic:
        execution = _attempt(lambda: _execution(run, session))
        if execution is not None:
            known.update(_from_execution(execution))
    return Plan(run.run_id, **{name: value for name, value in known.items() if value is not None})


def _execution(run: Run, session: Session) -> Any:
    if run.handle is None:
        run.handle = session.spark.streams.get(run.query_id)
    if str(run.handle.runId) != run.run_id:
        return None
    query = run.handle._jsq
    return query.streamingQuery() if hasattr(query, "streamingQuery") else query


def _from_execution(execution: Any) -> Iterator[tuple[str, Any]]:
    trigger = _attempt(lambda: parse_trigger(execution.trigger().toString()))
    if trigger is not None:
        yield from zip(("trigger", "trigger_interval"), trigger, strict=True)
    yield "output_mode", _attempt(lambda: str(execution.outputMode().toString()).lower())
    yield "sink", _attempt(lambda: parse_sink(execution.sink().toString()))
    yield "rate_limits", _attempt(lambda: rate_limits(execution.analyzedPlan()))
    last = _attempt(execution.lastExecution)
    if last is None:
        return
    yield "shuffle_partitions", _attempt(lambda: int(last.sparkSession().conf().get(CHECK)))
    yield "watermarks", _attempt(lambda: parse_watermarks(last.analyzed().toString()))
    physical = _attempt(lambda: str(last.executedPlan().toString()))
    if physical is not None:
        yield "keys", parse_keys(physical)
        yield "stateful", STATEFUL.search(physical) is not None


def parse_trigger(text: str) -> tuple[str | None, float | None]:
    """`ProcessingTimeTrigger(2000)` -> ("processing_time", 2.0)."""
    name, _, rest = text.partition("(")
    kind = TRIGGERS.get(name.rsplit(".", 1)[-1].rstrip("$"))
    milliseconds = re.match(r"\d+", rest)
    return kind, int(milliseconds[0]) / 1000 if milliseconds else None


def parse_sink(text: str) -> str:
    """Without the package and the object's hash: Java names some sinks by class."""
    return re.sub(r"^[\w.]+\.(?=[A-Z])|\$?@[0-9a-f]+$", "", text)


def parse_watermarks(plan: str) -> dict[str, float]:
    """Column -> allowed lateness in seconds, from a logical plan's text."""
    found = {}
    for column, delay in WATERMARK.findall(plan):
        parts = DELAY.findall(delay)
        if parts:
            found[column.strip()] = sum(float(number) * SECONDS[unit] for number, unit in parts)
    return found


def parse_keys(plan: str) -> tuple[str, ...]:
    """The columns of the widest shuffle first, without Spark's expression ids, from a physical plan's text."""
    shuffles: list[tuple[int, list[str]]] = []
    for after in plan.split(SHUFFLE)[1:]:
        *columns, width = _arguments(after)
        if width.isdecimal():
            shuffles.append((int(width), columns))
    names = _output_names(plan)
    keys: dict[str, None] = {}
    for _, columns in sorted(shuffles, key=lambda shuffle: -shuffle[0]):
        keys.update((EXPRESSION_ID.sub("", names.get(column, column)), None) for column in columns)
    return tuple(keys)


def _output_names(plan: str) -> dict[str, str]:
    """What the query calls the keys that are expressions: an aggregate puts its keys first in its output."""
    found: dict[str, str] = {}
    for line in plan.splitlines():
        if COMPUTED not in line or "Aggregate(keys=[" not in line or "output=[" not in line or "partial_" in line:
            continue
        keys = _arguments(line.split("keys=[", 1)[1].replace("]", ")", 1))
        output = _arguments(line.split("output=[", 1)[1].replace("]", ")", 1))
        for key, name in zip(keys, output, strict=False):
            if key.startswith(COMPUTED) and not name.startswith(COMPUTED):
                found.setdefault(key, name)
    return found


def _arguments(text: str) -> list[str]:
    """Splits `a, f(b, c), 2) and so on` at its own commas, up to its closing parenthesis."""
    found, depth, start = [], 0, 0
    for index, character in enumerate(text):
        if character in "([":
            depth += 1
        elif character in ")]" and depth:
            depth -= 1
        elif character in ",)" and not depth:
            found.append(text[start:index].strip())
            start = index + 1
            if character == ")":
                break
    return found or [""]


def rate_limits(analyzed: Any) -> Mapping[str, str]:
    """The options of the sources that cap what a batch may read."""
    found: dict[str, str] = {}
    leaves = analyzed.collectLeaves()
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        text = _attempt(partial(_v2_options, leaf))
        if text is None:
            text = _attempt(partial(_v1_options, leaf))
        for pair in (text or "").split(", "):
            option, _, value = pair.partition("=")
            if LIMIT.fullmatch(option):
                found[option] = value
    return found


def _v2_options(leaf: Any) -> str:
    return str(leaf.extraOptions().asCaseSensitiveMap().toString())[1:-1]


def _v1_options(leaf: Any) -> str:
    return str(leaf.dataSource().options().mkString(", ")).replace(" -> ", "=")


def _attempt(read: Callable[[], Value]) -> Value | None:
    try:
        return read()
    except Exception:  # another Spark version keeps it elsewhere, or the query has just ended
        return None
