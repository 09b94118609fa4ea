"""When a query's batches begin: the trigger interval, and how much of the time batches run."""

from collections.abc import Sequence
from itertools import pairwise
from math import gcd

from ledgerops.model.history import PAUSE_SECONDS
from ledgerops.model.records import LONG_RUNNING, Progress
from ledgerops.signals.memo import kept
from ledgerops.signals.run import Run

ALIGNMENT_SECONDS = PAUSE_SECONDS  # Spark starts a trigger on multiples of its interval, at most this late
BUSY_BATCHES = 10  # newest settled batches that the busy ratio is taken over
SATURATED_RATIO = 0.9  # batches run nearly back to back
COMPARED_BATCHES = 20  # newest ones, of which no two may begin in one interval
MIN_ALIGNED_SHARE = 0.8  # of the batches, which must fit an inferred interval
MAX_CHANCE = 0.001  # that as many begin there if they had waited for anything else
MIN_RUNS = 3  # that ended in the same way


class Trigger:
    """When the batches of one run begin. `settled` are those after the first, `given` a known interval in seconds."""

    def __init__(self, run: Run, settled: Sequence[Progress], given: float | None = None) -> None:
        self._run = run
        self._settled = settled
        self._given = given

    @kept
    def interval(self) -> float | None:
        """Seconds between triggers: from the plan, else as given, else from batches that had time to wait.

        A batch that waits for its trigger begins on a multiple of the interval; one that waits for rows does not,
        however regularly these come. One that outlasts its interval has nothing to wait for, so what earlier batches
        of the run show still holds. 0.0 means back to back; None that it is not known.
        """
        if self._run.plan.trigger_interval is not None:
            return self._run.plan.trigger_interval
        if self._given is not None:
            return self._given
        return _common_interval(self._run.history.waited, self._run.batches[-COMPARED_BATCHES:])

    @property
    def known(self) -> bool:
        """Whether the plan or the batches say how often one begins; an event log and Spark Connect have no plan."""
        return self._run.plan.trigger is not None or self.interval is not None

    @kept
    def ends_itself(self) -> bool:
        """Whether its runs end by themselves, as with AvailableNow, which an event log does not tell: each of several
        ended with a batch that had not waited for a trigger."""
        history = self._run.history
        ran = [
            ([b for b in history.batches if b.run_id == end.run_id], end) for end in history.ends if not end.unrecorded
        ]
        found = [
            end.exception is None
            and end.at - batches[-1].ended <= ALIGNMENT_SECONDS
            and all(later.started - earlier.ended <= ALIGNMENT_SECONDS for earlier, later in pairwise(batches[-2:]))
            for batches, end in ran
            if batches
        ]
        return len(found) >= MIN_RUNS and all(found)

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


def _common_interval(waited: Sequence[float], batches: Sequence[Progress]) -> float | None:
    """The longest interval, in tenths of a second, on whose multiples nearly all batches began that had `waited`, and
    in which hardly two of the newest began. More of them than by chance: the first does not count for that, as the
    interval is one between them."""
    gaps = [round(10 * (later - earlier)) for earlier, later in pairwise(waited)]
    spans = {*gaps, *(gcd(*pair) for pair in pairwise(gaps))}
    guesses = {span // triggers for span in spans for triggers in (1, 2, 3)}  # each second or third waited
    for tenths in sorted((each for each in guesses if each > 0), reverse=True):  # a clock may be set back
        interval = tenths / 10
        aligned = sum([(start + ALIGNMENT_SECONDS) % interval <= 2 * ALIGNMENT_SECONDS for start in waited])
        chance = (2 * ALIGNMENT_SECONDS / interval) ** (aligned - 1)
        if aligned < MIN_ALIGNED_SHARE * len(waited) or chance > MAX_CHANCE:
            continue
        began = [(batch.started + ALIGNMENT_SECONDS) // interval for batch in batches]
        apart = sum([earlier != later for earlier, later in pairwise(began)])
        if apart >= MIN_ALIGNED_SHARE * (len(batches) - 1):
            return interval
    return None
