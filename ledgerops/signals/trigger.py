"""When a query's batches begin: the trigger interval, and how much of the time batches run."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from ledgerops.model.records import LONG_RUNNING, Progress
from ledgerops.signals.memo import kept
from ledgerops.signals.run import Run

ALIGNMENT_SECONDS = 0.06  # Spark starts a processing-time trigger on multiples of its interval, at most this late
BUSY_BATCHES = 10  # newest settled batches that the busy ratio is taken over
SATURATED_RATIO = 0.9  # batches run nearly back to back
INFERENCE_BATCHES = 20  # newest batches that an unknown interval is inferred from
MIN_WAITS = 3  # of them that had time to wait
MIN_ALIGNED_SHARE = 0.8  # of the batches that waited, which must begin on multiples of the interval


class Trigger:
    """When the batches of one run begin. `settled` are those after the first, `given` a known interval in seconds."""

    def __init__(self, run: Run, settled: Sequence[Progress], given: float | None = None) -> None:
        self._run = run
        self._settled = settled
        self._given = given

    @kept
    def interval(self) -> float | None:
        """Seconds between triggers: as given, else from the plan, else from batches that had time to wait.

        A batch that waits for its trigger begins on a multiple of the interval; one that waits for rows does not,
        however regularly these come. 0.0 means back to back; None that it is not known.
        """
        if self._given is not None:
            return self._given
        if self._run.plan.trigger_interval is not None:
            return self._run.plan.trigger_interval
        waited = [
            (later.started - earlier.started, later.started)
            for earlier, later in pairwise(self._run.batches[-INFERENCE_BATCHES:])
            if later.started - earlier.ended > ALIGNMENT_SECONDS
        ]
        if len(waited) < MIN_WAITS:
            return None
        guess = round(median([gap for gap, _ in waited]), 1)
        if guess <= 2 * ALIGNMENT_SECONDS:
            return None  # any instant would be a multiple of it
        # which began on multiples of it, as Spark and its clock keep them
        aligned = sum([(started + ALIGNMENT_SECONDS) % guess <= 2 * ALIGNMENT_SECONDS for _, started in waited])
        return guess if aligned >= MIN_ALIGNED_SHARE * len(waited) else None

    @property
    def known(self) -> bool:
        """Whether the plan or the batches say how often one begins; an event log and Spark Connect have no plan."""
        return self._run.plan.trigger is not None or self.interval is not None

    @kept
    def ends_itself(self) -> bool:
        """Whether its runs end by themselves, as with AvailableNow, which an event log does not tell: each of several
        ended with a batch that had not waited for a trigger."""
        history = self._run.history
        ran = [([b for b in history.batches if b.run_id == end.run_id], end) for end in history.ends]
        found = [
            end.exception is None
            and end.at - batches[-1].ended <= ALIGNMENT_SECONDS
            and all(later.started - earlier.ended <= ALIGNMENT_SECONDS for earlier, later in pairwise(batches[-2:]))
            for batches, end in ran
            if batches
        ]
        return len(found) >= MIN_WAITS and all(found)

    @kept
    def longest_pause(self) -> float | None:
        """The most seconds between the end of a batch and the start of the next; None before two batches."""
        return max((later.started - earlier.ended for earlier, later in pairwise(self._run.batches)), default=None)

    @kept
    def busy_ratio(self) -> float | None:
        """Share of the time that batches took, over the last ten; 1 when they run back to back. None for continuous
        processing and real-time mode, whose batches fill their time whatever there is to do."""
        last = self._settled[-BUSY_BATCHES:]
        if len(last) < 2 or self._run.plan.trigger in LONG_RUNNING:
            return None
        final = max(last[-1].duration, self.interval or 0.0)  # the last batch waits for its next trigger, too
        span = last[-1].started + final - last[0].started
        return min(1.0, sum(batch.duration for batch in last) / span) if span > 0 else None
