"""What a query reads from and writes to, as far as advice differs by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ledgerops.diagnosis.facts.contention import MIN_PYTHON_CORES, cpu_use
from ledgerops.diagnosis.facts.small_files import small_files
from ledgerops.model.finding import Remedy
from ledgerops.model.records import SourceProgress
from ledgerops.signals.query_view import QueryView

SourceKind = Literal["kafka", "files", "table", "rate", "other"]
SinkKind = Literal["foreach_batch", "foreach", "kafka", "files", "table", "none", "other"]

ANY = ""  # the context of a first step that fits every source and sink
TABLES = ("delta", "iceberg")  # kinds of sources of `model.sources`
FILES = ("files", "autoloader")
MADE_UP = ("ratestream", "ratepermicrobatch")  # in Spark's description of a source that makes its rows itself
SINKS: Mapping[str, SinkKind] = {
    "foreachbatch": "foreach_batch",
    "foreachwriter": "foreach",
    "kafka": "kafka",
    "filesink": "files",
    "delta": "table",
    "iceberg": "table",
    "noop": "none",
    "memory": "none",
}


def source_kind(view: QueryView) -> SourceKind:
    """The kind of all sources; `other` where it is not known, or they differ."""
    kinds = {_source(source) for source in view.sources}
    return kinds.pop() if len(kinds) == 1 else "other"


def _source(source: SourceProgress) -> SourceKind:
    if source.kind == "kafka":
        return "kafka"
    if any(sign in source.description.lower() for sign in MADE_UP):
        return "rate"
    return "table" if source.kind in TABLES else "files" if source.kind in FILES else "other"


def sink_kind(view: QueryView) -> SinkKind:
    """The kind of the sink, by its name: what stands in brackets is where it writes."""
    name = sink_name(view).lower()
    return next((kind for sign, kind in SINKS.items() if sign in name), "other")


def sink_name(view: QueryView) -> str:
    """The sink without its options, by the plan, else by the newest batch."""
    text = view.plan.sink or (view.last.sink if view.last is not None else "")
    return text.partition("[")[0].partition("(")[0] or "sink"


def source_names(view: QueryView) -> str:
    """The names of the sources of the newest batch."""
    return ",".join(source.name for source in view.sources) or view.query


def function_computes(view: QueryView) -> bool | None:
    """Whether the function of `foreachBatch` computes in the driver's Python rather than waits for its target; None
    where nothing tells, as in an event log."""
    if sink_kind(view) != "foreach_batch":
        return False
    use = cpu_use(view)
    return None if use is None else use.cores_by.get("driver_python", 0.0) >= MIN_PYTHON_CORES


def function_place(view: QueryView, since: float) -> str | None:
    """The line at which the function of `foreachBatch` was most often, by the newest samples; None without any since
    then (epoch seconds)."""
    code = view.history.driver_code
    return code.place if code is not None and code.run_id == view.history.run_id and code.at >= since else None


def contexts(view: QueryView) -> tuple[str, ...]:
    """What first steps are chosen by, the most special first: the sink, then the source, then any."""
    special = ("small files",) if small_files(view) else ()
    return (*special, f"sink {sink_kind(view)}", f"source {source_kind(view)}", ANY)


def fitting(steps: Mapping[str, Remedy], view: QueryView) -> Remedy:
    """The step, of those by context, that fits the query's source or sink; ANY has one for all others."""
    return next(steps[context] for context in contexts(view) if context in steps)
