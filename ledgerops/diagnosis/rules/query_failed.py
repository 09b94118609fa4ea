"""Query failed: the query or its application ended with an exception, or vanished without a report of its end.

Meaning: Spark stopped the query because of an error, its application ended with one (an exception that nothing caught,
    the end of its JVM, under `ledgerops exec` also an exit code), or its server is gone and cannot say why. A query
    that was stopped on purpose, or that read all available rows with an `availableNow` trigger, has not failed.
Impact: the query writes no results until it is started again. Rows wait in the source for as long as it keeps them.
Diagnosis: 1. Read the finding: it has the error class, the first line of the exception, the batch and, if the exception
    names them, the file or the offset. A sink or a broker that is named is where to look first. A checkpoint belongs
    to one query: where the finding names another that has it, one of the two was given a wrong checkpointLocation.
    2. `sum by (error_class) (increase(ledgerops_query_failures_total{app="APP",query="QUERY"}[1h]))` shows how often it
    failed. More than twice means that a restart alone does not help.
    3. Read the whole stack in the log of the driver. A recording keeps its informative lines:
    `grep -h '"terminated"' RECORDING/*.jsonl | tail -1`. If the stack ends in your own function, a row is the cause.
Mitigation: check how long the source keeps its rows, so that none are lost while you search. Repair what the exception
    names, then start the query with the same checkpoint: it repeats the batch that failed, and a function of
    `foreachBatch` writes again what it had written of it. If it fails again in the same batch, a row of that batch is
    the cause: its offsets are in the Spark log.
Evidence:
    ledgerops_query_failures_total: number of `terminated` records of the query with an exception
    failed_batch_id: the highest batchId in the progress records of all runs of the query, plus one
    failed_at_offset: the offset that the exception names
    application_errors: `terminated` records of the run with an application_error
    available_bytes: of an application that lost its JVM: memory_available_bytes of the newest record `host`
    seconds_beside_another: of a query without an exception: its end - a later start with the same query id
    seconds_without_a_sign: of a run that vanished: its recorded end - the end of its newest batch, or its start
"""

from collections.abc import Iterator

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.context import may_read_files, writes_itself
from ledgerops.diagnosis.facts.exception_text import error_class, exception_class, first_line, place, raised_at
from ledgerops.diagnosis.facts.failures import application_error, failures, memory_left, replaced_by, same_checkpoint
from ledgerops.diagnosis.facts.known_failures import GONE, RESUME, explain
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.history import Ended, History
from ledgerops.model.stops import OF_JVM
from ledgerops.signals.query_view import QueryView

REPAIR = first_step("query-failed", GENERAL, "the query fails again while the cause remains")
WITH_CHECKPOINT = Remedy(
    "start the query with the same checkpoint",
    "it resumes with the batch that failed; a new checkpoint would repeat or lose rows",
    safe=False,
)
WITH_ITS_WRITES = Remedy(
    WITH_CHECKPOINT.action,
    "it resumes with the batch that failed: what the sink's function had written of it is there twice, unless it "
    "replaces it; a new checkpoint would repeat or lose rows",
    safe=False,
)
WITH_A_COPY = Remedy(
    "bring back what is gone from a copy or an older version, then start the query with the same checkpoint",
    "until it is there the same batch fails again; what cannot be brought back takes a new checkpoint and is lost",
    safe=False,
)
WITHOUT_CHECKPOINT = Remedy(
    "start the query with a checkpointLocation",
    "it has none, so this start does not resume where the query failed; the next one will",
    safe=False,
)


def check(view: QueryView) -> Iterator[Finding]:
    ended = view.history.ended
    if ended is not None and ended.lost:
        yield _vanished(view, ended)
    if ended is not None and (error := application_error(view)) is not None:
        yield _with_application(view, ended, error)
    if ended is not None and (other := replaced_by(view)) is not None:
        yield _replaced(view, ended, other)
    if ended is None or ended.exception is None:
        return
    line = first_line(ended.exception)
    evidence = [failures(view, ended.at)]
    if (newest := view.history.last) is not None:
        evidence.append(Evidence("failed_batch_id", newest.batch_id + 1.0, "count", "it is repeated", ended.at))
    if (offset := place(ended.exception)[2]) is not None:
        evidence.append(Evidence("failed_at_offset", float(offset), "offsets", "none named", ended.at))
    ends = ((each.query, each.ended) for each in view.others if each.ended is not None)
    stopped = sorted(name for name, end in ends if end.stopped_by(ended, view.others))
    same = sorted(each.query for each in same_checkpoint(view))
    failure = explain(ended.exception, may_read_files(view))
    step = REPAIR if failure is None else failure.first_step
    resume = WITH_ITS_WRITES if writes_itself(view) else WITH_CHECKPOINT
    again = WITHOUT_CHECKPOINT if view.plan.temporary_checkpoint else resume
    again = WITH_A_COPY if failure is not None and failure.name in GONE else again
    steps = (step,) if RESUME in step.action and again is resume else (step, again)
    yield Finding(
        f"the query failed {_after(view)} ({error_class(ended.error_class, line) or 'no error class'}): {line}"
        + (f"; {failure.happened}" if failure is not None else "")
        + raised_at(ended.exception)
        + (f"; its checkpoint is also that of {', '.join(same)}" if same else "")
        + (f"; the application stopped, and with it {', '.join(stopped)}" if stopped else ""),
        Component("query", view.query, error_class(ended.error_class, line) or exception_class(ended.exception)),
        tuple(evidence),
        steps,
        confidence=1.0,
        began=ended.at,
    )


def _after(view: QueryView) -> str:
    newest = view.history.last
    return f"after batch {newest.batch_id}" if newest is not None else "before its first batch"


def _with_application(view: QueryView, ended: Ended, error: str) -> Finding:
    jvm, of_a_query = error.endswith(OF_JVM), exception_class(error) == "StreamingQueryException"
    failure = explain(error, may_read_files(view)) if jvm or of_a_query else None
    step = first_step("query-failed", "jvm" if jvm else "application", "the query runs again with it")
    return Finding(
        f"the query stopped {_after(view)}: its application ended with {error}"
        + (f"; {failure.happened}" if failure is not None else ""),
        Component("query", view.query, "application"),
        (Evidence("application_errors", 1.0, "count", "0", ended.at), *(memory_left(view) if jvm else ())),
        (step if failure is None else failure.first_step,),
        confidence=1.0,
        began=ended.at,
    )


def _replaced(view: QueryView, ended: Ended, other: History) -> Finding:
    return Finding(
        f"Spark stopped the query {_after(view)}: {other.query} began with its checkpoint",
        Component("query", view.query, "checkpoint"),
        (Evidence("seconds_beside_another", ended.at - (other.started_at or 0.0), "seconds", "0", ended.at),),
        (first_step("query-failed", "checkpoint", "a checkpoint belongs to one query: the other one goes on with it"),),
        confidence=0.9, began=ended.at, at_most="warning",
    )  # fmt: skip


def _vanished(view: QueryView, ended: Ended) -> Finding:
    """The run is gone, and nobody said that it stopped or failed."""
    batch = view.history.last_progress
    seen = batch or view.history.started_at or ended.at
    return Finding(
        f"the query vanished without a report of its end, {duration(ended.at - seen)} after its "
        f"{'last batch' if batch else 'start'}",
        Component("query", view.query, "vanished"),
        (Evidence("seconds_without_a_sign", max(0.0, ended.at - seen), "seconds", "a report of its end", ended.at),),
        (first_step("query-failed", "vanished", "a server that is killed or runs out of memory reports nothing"),),
        confidence=0.8,
        began=ended.at,
    )


RULE = Rule("query-failed", "critical", check, __doc__, ("freshness-breach",), linger=0.0, outlives=True, at_rest=True)
