"""Batches of which nothing was written: all that their function of foreachBatch ran has failed, and it went on."""

from ledgerops.common.format import counted
from ledgerops.diagnosis.facts.context import sink_kind
from ledgerops.diagnosis.facts.exception_text import first_line
from ledgerops.diagnosis.limits import LOOKBACK_BATCHES, MIN_BATCHES
from ledgerops.metrics.first_steps import first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress, TaskSummary
from ledgerops.signals.query_view import QueryView

RAISE = Remedy(
    "let the function raise what it catches, and read the rows of these batches again with a query of their own",
    "a batch whose function raises is not committed, and is repeated after a restart",
    safe=False,
)


def hidden_failures(view: QueryView) -> Finding | None:
    """That rows were lost so. One such batch alone may be kept by the function, for its next one."""
    if sink_kind(view) != "foreach_batch":
        return None
    looked = ((batch, view.history.tasks_of(batch)) for batch in view.batches[-LOOKBACK_BATCHES:])
    found = [(batch, tasks) for batch, tasks in looked if tasks is not None and _is_lost(batch, tasks)]
    if len(found) < MIN_BATCHES:
        return None
    (first, _), (last, tasks) = found[0], found[-1]
    error = max(tasks.failed, key=lambda each: each.ended - each.started).error
    return Finding(
        f"nothing was written of {counted(len(found), 'batch', 'batches')} that were looked at, {first.batch_id} to "
        f"{last.batch_id}: all that the function of foreachBatch ran failed, and it went on: {first_line(error)}",
        Component("sink", view.plan.sink or "foreachBatch"),
        (Evidence("unwritten_batches", float(len(found)), "count", "0", last.ended),),
        (first_step("data-loss", "failure hidden", "each batch that goes on so is committed without its rows"), RAISE),
        confidence=0.95,
        began=first.started,
        share=1.0,  # these batches are lost whole, which no cause of lateness comes before
    )


def _is_lost(batch: Progress, tasks: TaskSummary) -> bool:
    """Whether a batch moved its sources, and no stage ran but those of statements that failed: who writes rows, or
    takes them out of Spark, runs one."""
    moved = any(each.moved for each in batch.sources)
    return moved and bool(tasks.whole) and bool(tasks.failed) and not tasks.stages
