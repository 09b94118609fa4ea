"""Batches that a file sink skipped: the log of its output folder had batches of these numbers from before the run.

The sink's numbers go on with the checkpoint. With another checkpoint, or another query's folder, they begin in the past
of the log, and rows that were read are written nowhere (Spark's `FileStreamSink.addBatch`).
"""

from ledgerops.diagnosis.facts.context import sink_kind, sink_name
from ledgerops.diagnosis.limits import LOOKBACK_BATCHES, MIN_BATCHES
from ledgerops.metrics.first_steps import first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress
from ledgerops.signals.query_view import QueryView

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
    return Finding(
        f"the sink skipped {len(batches)} batches, {batches[0].batch_id} to {batches[-1].batch_id}: the log of its "
        "output folder already has these numbers, of another checkpoint; what they read was not written",
        Component("sink", sink_name(view), "output folder"),
        (Evidence("skipped_batches", float(len(batches)), "count", "0", batches[-1].ended),),
        (first_step("data-loss", "output folder", "each batch that it skips is lost without an error"), OWN_FOLDER),
        confidence=0.95,
        began=batches[0].started,
    )


def _skipped(view: QueryView) -> list[Progress]:
    """The batches that moved their sources and processed nothing, though files of their number were written before the
    run began."""
    begun = view.history.started_at
    if begun is None or sink_kind(view) != "files":
        return []
    written = {each.batch_id for each in view.history.commits if each.files and each.at < begun}
    return [
        batch
        for batch in view.batches[-LOOKBACK_BATCHES:]
        if batch.batch_id in written and not batch.rows and any(each.start != each.end for each in batch.sources)
    ]
