"""What a query reads from and writes to, as far as advice differs by it: kinds, slow answers, small files."""

import re
from collections.abc import Mapping
from statistics import median, median_high
from typing import Literal, NamedTuple

from ledgerops.common.format import counted, size
from ledgerops.diagnosis.facts.contention import MIN_PYTHON_CORES, cpu_use
from ledgerops.diagnosis.harm import late_batches
from ledgerops.diagnosis.limits import FAR_TIMES, MAX_SAMPLE_AGE_SECONDS
from ledgerops.model.finding import Remedy
from ledgerops.model.records import DriverCode
from ledgerops.model.sources import NAMED
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

SourceKind = Literal["kafka", "files", "table", "rate", "other"]
SinkKind = Literal["foreach_batch", "foreach", "kafka", "files", "table", "none", "other"]
ANY = ""  # the context of a first step that fits every source and sink
SOURCES: Mapping[str, SourceKind] = {  # by the kinds of `model.sources`
    "kafka": "kafka", "delta": "table", "iceberg": "table", "files": "files", "autoloader": "files",
}  # fmt: skip
MADE_UP = ("ratestream", "ratepermicrobatch")  # in Spark's description of a source that makes its rows itself
SINKS: Mapping[str, SinkKind] = {
    "foreachbatch": "foreach_batch", "foreachwriter": "foreach", "kafka": "kafka", "filesink": "files",
    "delta": "table", "iceberg": "table", "noop": "none", "memory": "none",
}  # fmt: skip
MIN_ANSWER_SECONDS = 0.15  # of an answer; within a region it takes hundredths of a second
MIN_ANSWER_RATIO = 5.0  # over the usual: the process that asks is small, and also slow on a busy machine
MIN_FORMER_SAMPLES = 15  # newest answers that do not count as usual: the slowness may have begun among them
MIN_FILES = 20.0  # a batch: a few small files are what little data needs
MAX_FILE_BYTES = 1e6  # below it opening a file takes longer than reading it


class SmallFiles(NamedTuple):
    """Files of a batch, and their size in bytes on average, by so many commits."""

    files: float
    bytes: float
    commits: int

    @property
    def summary(self) -> str:
        """350 files of 4.1 kB"""
        files = round(float(f"{self.files:.2g}"))  # findings of one answer may have seen another newest commit
        return f"{counted(files, 'file')} of {size(self.bytes)}"


def keeps_shuffle_partitions(view: QueryView) -> bool:
    """Whether the checkpoint keeps spark.sql.shuffle.partitions without state, too: before Spark 4.1 (SPARK-53942)."""
    version = re.match(r"(\d+)\.(\d+)", view.plan.spark_version or "")
    return version is not None and (int(version[1]), int(version[2])) < (4, 1) and not view.plan.temporary_checkpoint


def source_kind(view: QueryView) -> SourceKind:
    """The kind of all sources; `other` where it is not known, or they differ."""
    kinds: set[SourceKind] = set()
    for source in view.sources:
        made_up = any(sign in source.description.lower() for sign in MADE_UP)
        kinds.add("rate" if made_up and source.kind != "kafka" else SOURCES.get(source.kind, "other"))
    return kinds.pop() if len(kinds) == 1 else "other"


def may_read_files(view: QueryView) -> bool:
    """Whether a source may be files or a table, by the newest batch of any run."""
    last = view.history.last
    return last is None or not all(source.kind == "kafka" for source in last.sources)


@once
def sink_kind(view: QueryView) -> SinkKind:
    """The kind of the sink, by its name: what stands in brackets is where it writes."""
    name = sink_name(view).lower()
    return next((kind for sign, kind in SINKS.items() if sign in name), "other")


def writes_itself(view: QueryView) -> bool:
    """Whether a function of the user's writes: what it wrote of a batch that failed, it writes again with the batch."""
    return sink_kind(view) in ("foreach", "foreach_batch")


def has_no_python(view: QueryView) -> bool:
    """Whether no task runs Python, by the plan: what `foreach`, `foreachBatch` and a Python source run is not in it."""
    hidden = writes_itself(view) or any(".python." in s.description for s in view.sources)
    return view.plan.python is False and not hidden


def sink_name(view: QueryView) -> str:
    """The sink without its options, by the plan, else by the newest batch."""
    text = view.plan.sink or (view.last.sink if view.last is not None else "")
    return text.partition("[")[0].partition("(")[0] or "sink"


def source_names(view: QueryView) -> str:
    """The names of the sources of the newest batch."""
    return ",".join(source.name for source in view.sources) or view.query


def folder_of(view: QueryView, name: str) -> str:
    """The folder of a source whose name does not tell it, in brackets, such as ` (orders)`; empty of any other."""
    found = (NAMED[each.kind].folder(each.description) for each in view.sources if each.name == name)
    folder = next(found, None)
    return f" ({folder})" if folder else ""


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
    code = _function_code(view, since)
    return code.place if code is not None else None


def function_calls(view: QueryView, since: float) -> str:
    """The package that this line calls; empty where none is known."""
    code = _function_code(view, since)
    return code.calls if code is not None else ""


def _function_code(view: QueryView, since: float) -> DriverCode | None:
    code = view.history.driver_code
    return code if code is not None and code.run_id == view.history.run_id and code.at >= since else None


def fitting(steps: Mapping[str, Remedy], view: QueryView) -> Remedy:
    """The step, of those by context, that fits the query's sink or source, in this order; ANY has one for others."""
    special = ("small files",) if small_files(view) else ()
    contexts = (*special, f"sink {sink_kind(view)}", f"source {source_kind(view)}", ANY)
    return next(steps[context] for context in contexts if context in steps)


@once
def slow_answers(view: QueryView) -> tuple[float, float] | None:
    """Median seconds that the broker takes to answer ledgerops itself, which asks it beside the query, now and usually;
    None unless that is far longer."""
    answers = [heads for heads in view.history.heads if heads.seconds is not None and heads.at <= view.now]
    newest, former = answers[-RECENT_BATCHES:], answers[:-MIN_FORMER_SAMPLES]
    known = min(len(newest), len(former)) >= RECENT_BATCHES
    if not known or view.now - newest[-1].at > MAX_SAMPLE_AGE_SECONDS:
        return None
    now, usual = (median(each.seconds or 0.0 for each in some) for some in (newest, former))
    return (now, usual) if now >= max(MIN_ANSWER_SECONDS, MIN_ANSWER_RATIO * usual) else None


@once
def small_files(view: QueryView) -> SmallFiles | None:
    """The small files that a late batch writes, or any where none is late, by the newest commits of these; None where
    files are few or large, or the sink's commits are not known."""
    known = [(each.files, each.bytes, each.batch_id) for each in view.history.commits if each.files]
    if not known:
        return None
    judged = {batch.batch_id for batch in late_batches(view)}
    newest = ([each for each in known if each[2] in judged] or known)[-RECENT_BATCHES:]
    counts, sizes = [files for files, _, _ in newest], [held / files for files, held, _ in newest if held is not None]
    if len(counts) < RECENT_BATCHES and sum(counts) < FAR_TIMES * RECENT_BATCHES * MIN_FILES:
        return None
    files, each = median_high(counts), median(sizes or [float("inf")])
    return SmallFiles(files, each, len(counts)) if files >= MIN_FILES and each <= MAX_FILE_BYTES else None
