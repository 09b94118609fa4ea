"""Batches that a file sink skipped: the log of its output folder had their numbers, or later ones, before the run.

The sink's numbers go on with the checkpoint. With another checkpoint, or another query's folder, they begin in the past
of the log, and rows that were read are written nowhere (Spark's `FileStreamSink.addBatch`).
"""

from ledgerops.diagnosis.facts.context import sink_kind, sink_name
from ledgerops.diagnosis.limits import LOOKBACK_BATCHES, MIN_BATCHES
from ledgerops.metrics.first_steps import first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress
from ledgerops.signals.query_view import QueryView

WHY = "each batch that it skips is lost without an error"
OWN_FOLDER = Remedy(
    "give the query an output folder of its own and a new checkpoint, and read what was skipped again",
    "with the old folder the sink would skip the same numbers again",
    safe=False,
)


def skipped_by_sink(view: QueryView) -> Finding | None:
    """That rows were lost so. One such batch alone is repeated after a restart."""
    batches = _skipped(view)
    if len(batches) < MIN_BATCHES:
        return None
    last = batches[-1].batch_id
    since = next((batch.batch_id for batch in view.batches if batch.batch_id > last and batch.rows), None)
    over = "" if since is None else f"; it has written again since batch {since}"
    return Finding(
        f"the sink skipped {len(batches)} batches, {batches[0].batch_id} to {last}: the log of its output folder "
        f"already had these numbers, of another checkpoint; what they read was not written{over}",
        Component("sink", sink_name(view), "output folder"),
        (Evidence("skipped_batches", float(len(batches)), "count", "0", batches[-1].ended),),
        (first_step("data-loss", "skipped once" if over else "output folder", WHY), *([] if over else [OWN_FOLDER])),
        confidence=0.95,
        began=batches[0].started,
        share=1.0,  # these batches are lost whole, which no cause of lateness comes before
    )


def _skipped(view: QueryView) -> list[Progress]:
    """The batches that moved their sources and processed nothing, of numbers up to the newest of which files were
    written before the run began."""
    begun = view.history.started_at
    if begun is None or sink_kind(view) != "files":
        return []
    newest = max((each.version for each in view.history.commits if each.files and each.at < begun), default=None)
    if newest is None:
        return []
    return [
        batch
        for batch in view.batches[-LOOKBACK_BATCHES:]
        if batch.batch_id <= newest and not batch.rows and any(each.moved for each in batch.sources)
    ]
