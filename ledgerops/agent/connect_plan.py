"""What a Spark Connect client knows of a query's plan: the command that it sent, and how the server explains the query.

Nothing is changed in PySpark: its client reports the start of a query on the thread that started it, and the writer
that sent the command is on that thread's stack. Private parts of PySpark are read; where a version keeps them
elsewhere, the plan stays unknown.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ledgerops.agent.plan_text import parse_seconds
from ledgerops.model.records import Plan
from ledgerops.model.sources import is_limit

START = "_start_internal"  # PySpark's method that sends the command and reports the start
MAX_PLANS = 1000  # of runs, the newest
MAX_FRAMES = 20  # looked through for it
MAX_MESSAGES = 5000  # of a command, searched for the options of its sources
TRIGGERS = {
    "processing_time_interval": "processing_time", "available_now": "available_now", "once": "once",
    "continuous_checkpoint_interval": "continuous", "real_time_batch_duration": "real_time",
}  # fmt: skip
PHYSICAL = "== Physical Plan =="


class SentPlans:
    """The plans of the runs that this client has started, without what only the server knows."""

    def __init__(self) -> None:
        self._plans: dict[str, Plan] = {}

    def note(self, run_id: str) -> None:
        """Remembers the plan of a run whose start PySpark reports on this thread. Raises nothing."""
        with contextlib.suppress(Exception):  # another version of PySpark keeps it elsewhere
            plan = sent_plan(run_id)
            if plan is not None:
                self._plans[run_id] = plan
                if len(self._plans) > MAX_PLANS:
                    del self._plans[next(iter(self._plans))]

    def get(self, run_id: str) -> Plan | None:
        """The plan of a run; None where another client started it, or this one before it was watched."""
        return self._plans.get(run_id)


def sent_plan(run_id: str) -> Plan | None:
    """The plan of the run whose start PySpark reports on this thread; None when another thread reports it."""
    frame = sys._getframe(1)
    for _ in range(MAX_FRAMES):
        if frame.f_code.co_name == START:
            command = getattr(frame.f_locals.get("self"), "_write_proto", None)
            return None if command is None else plan_of(run_id, command)
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def plan_of(run_id: str, command: Any) -> Plan:
    """What the command WriteStreamOperationStart says. Raises AttributeError and ValueError for another message."""
    trigger: str | None = "processing_time"
    interval: float | None = 0.0  # Spark's default: each batch begins when the last one has ended
    if (field := command.WhichOneof("trigger")) is not None:
        value = getattr(command, field)
        trigger, interval = TRIGGERS.get(field), parse_seconds(value) if isinstance(value, str) else None
    return Plan(
        run_id, trigger=trigger, trigger_interval=interval, output_mode=(command.output_mode or "append").lower(),
        rate_limits=_rate_limits(command),
    )  # fmt: skip


def _rate_limits(command: Any) -> Mapping[str, str]:
    """The options that cap what a batch may read, of every source in the command."""
    found: dict[str, str] = {}
    left = [command.input]
    for _ in range(MAX_MESSAGES):
        if not left:
            break
        message = left.pop()
        if message.DESCRIPTOR.name == "DataSource":
            found.update((name.lower(), value) for name, value in message.options.items() if is_limit(name))
            continue
        left += _parts(message)
    return found


def _parts(message: Any) -> Iterator[Any]:
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        if hasattr(value, "ListFields"):
            yield value
        else:
            yield from value


def explanation(handle: Any) -> str:
    """The plans of a query's newest batch as the server prints them. Raises what PySpark raises."""
    from pyspark.sql.connect.proto import StreamingQueryCommand

    command = StreamingQueryCommand()
    command.explain.extended = True
    return str(handle._execute_streaming_query_cmd(command).explain.result)
