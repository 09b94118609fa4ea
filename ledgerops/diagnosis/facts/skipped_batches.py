"""Batches that a file sink skipped: the log of its output folder had batches of these numbers from before the run.

The sink's numbers go on with the checkpoint. With another checkpoint, or another query's folder, they begin in the past
of the log, and rows that were read are written nowhere (Spark's `FileStreamSink.addBatch`).
"""

from collections.abc import Sequence

from ledgerops.diagnosis.facts.context import sink_kind
from ledgerops.diagnosis.limits import LOOKBACK_BATCHES, MIN_BATCHES
from ledgerops.model.records import Progress
from ledgerops.signals.query_view import QueryView


def skipped_batches(view: QueryView) -> Sequence[Progress]:
    """Those that moved their sources and processed nothing, though files of their number were written before the run
    began. One alone is a batch that is repeated after a restart."""
    begun = view.history.started_at
    if begun is None or sink_kind(view) != "files":
        return []
    written = {each.batch_id for each in view.history.commits if each.files and each.at < begun}
    found = [
        batch
        for batch in view.batches[-LOOKBACK_BATCHES:]
        if batch.batch_id in written and not batch.rows and any(each.start != each.end for each in batch.sources)
    ]
    return found if len(found) >= MIN_BATCHES else []
