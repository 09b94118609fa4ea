"""Which parts of a batch take longer than usual: missing cores slow down all of it, a broker or a sink its own part."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import batch_time
from ledgerops.signals.baseline import Slowdown
from ledgerops.signals.query_view import QueryView

MIN_STRETCH_RATIO = 1.5  # of the time of the driver's own threads, when they wait for a core
# of the whole batch's slowdown: missing cores slow everything down alike, a broker does not
MIN_SHARE_OF_SLOWDOWN = 0.5
# the ratio of a shorter phase is chance; this makes the ratio of planning too small, if anything
MIN_PHASE_SECONDS = 0.05
OWN_PHASES = ("wal_commit", "commit_offsets", "add_batch")  # none of them waits for a source


def of_phase(view: QueryView, phase: str) -> float:
    """How much longer a phase takes than usual."""
    before, now = (
        median(batch.phases.get(phase, 0.0) for batch in some) for some in (view.baseline.usual, view.baseline.recent)
    )
    return now / max(before, MIN_PHASE_SECONDS)


def of_all(view: QueryView, lost: Slowdown) -> bool:
    """Whether planning has grown like the whole batch: it waits for nothing but a core. Where it is too short to tell
    how much it has grown, all else must have grown alike."""
    stretched, much = of_phase(view, "query_planning"), MIN_SHARE_OF_SLOWDOWN * lost.seconds / lost.usual_seconds
    alike = stretched >= much or all(of_phase(view, phase) >= much for phase in OWN_PHASES)
    return stretched >= MIN_STRETCH_RATIO and alike


class Work(NamedTuple):
    """Medians over batches: CPU seconds of their tasks, and the shares of their run time that they computed and that
    the JVM collected garbage."""

    cpu: float
    cpu_share: float
    gc_share: float


def work(view: QueryView, known: batch_time.Pairs) -> Work | None:
    """Of these batches; None when the tasks of too few are known."""
    found = []
    for _, tasks in known:
        ran = tasks.run_seconds
        if ran > 0:
            found.append(Work(tasks.cpu_seconds, tasks.cpu_seconds / ran, tasks.gc_seconds / ran))
    return Work(*(median(each) for each in zip(*found, strict=True))) if len(found) >= batch_time.MIN_PAIRS else None
