"""Which batches of a query are far slower than the rest, now and then, and whether it is their sink."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median, pstdev
from typing import NamedTuple

from ledgerops.common.format import duration
from ledgerops.diagnosis.batch_parts import DRIVER, UNEVEN
from ledgerops.diagnosis.facts.contention import contention
from ledgerops.diagnosis.facts.context import sink_kind
from ledgerops.diagnosis.harm import MIN_LATE_SHARE, WINDOW_SECONDS
from ledgerops.diagnosis.limits import (
    CLEAR_TIMES,
    FAR_TIMES,
    LONG_SECONDS,
    LOOKBACK_BATCHES,
    MIN_BATCHES,
    MOSTLY,
    VERY_FAR_TIMES,
)
from ledgerops.diagnosis.profile import split_of
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import OVER_RATIO
from ledgerops.signals.query_view import QueryView

MIN_JUDGED_BATCHES = 8  # needed to know what is usual
MIN_EVENTS = 3  # separate slow batches: one is a hiccup, two may be a coincidence
FAR_SECONDS = 15.0  # two are enough when each is very far longer than usual, and they add up to so many seconds
COMPACTION_BATCHES = 10  # Spark's default interval for compacting state snapshots and metadata logs
MAX_REGULAR_DEVIATION = 0.35  # standard deviation over mean of the spacings; a timer stays below it


class Stalls(NamedTuple):
    """The newest batches, the usual seconds of one, those that waited long for the sink, and those of them that do not
    follow one of them. `waiting`: the median share of what they take beyond the usual in which no task computes."""

    batches: Sequence[Progress]
    usual: float
    slow: Sequence[Progress]
    events: Sequence[Progress]
    waiting: float

    @property
    def spacings(self) -> Sequence[float]:
        """Seconds between the starts of the events."""
        return [later.started - earlier.started for earlier, later in pairwise(self.events)]

    @property
    def excess(self) -> float:
        """Median seconds of a slow one beyond the usual."""
        return median(each.duration for each in self.slow) - self.usual

    @property
    def lost(self) -> float:
        """Seconds of all slow ones beyond the usual."""
        return sum(batch.duration - self.usual for batch in self.slow)

    @property
    def far(self) -> bool:
        """Whether each takes ten times the usual and all together 15 s: then two are proof enough."""
        durations = [each.duration for each in self.slow]
        return min(durations, default=0.0) >= VERY_FAR_TIMES * self.usual and sum(durations) >= FAR_SECONDS

    @property
    def regular(self) -> bool | None:
        """Whether the events come in a rhythm; None of two, which tell none."""
        spacings = self.spacings
        if len(spacings) < MIN_BATCHES:
            return None
        return pstdev(spacings) < MAX_REGULAR_DEVIATION * (sum(spacings) / len(spacings))

    @property
    def rhythm(self) -> str:
        """When they come, as text."""
        between = duration(median(self.spacings))
        if self.regular is None:
            return f"{between} apart"
        return f"every {between}" if self.regular else f"at irregular intervals with a median of {between}"


def slow_writes(view: QueryView) -> Stalls | None:
    """The waits for the sink, if there are enough of them, they are not the rule, and the newest is not long ago."""
    interval = view.interval
    least = max(LONG_SECONDS, OVER_RATIO * interval)
    if not any(batch.duration > least for batch in view.baseline.steady[-LOOKBACK_BATCHES:]):
        return None  # none is slow, whatever is usual
    found = _split(view, _newest(view, view.baseline.steady))
    if 0 < len(found.events) < MIN_EVENTS:
        found = _split(view, _newest(view, view.baseline.settled))
    count, needed = len(found.batches), MIN_BATCHES if found.far else MIN_EVENTS
    if count < MIN_JUDGED_BATCHES or len(found.events) < needed or len(found.slow) >= MIN_LATE_SHARE * count:
        return None
    if interval and found.usual > interval:
        return None
    over = view.now - found.slow[-1].ended > CLEAR_TIMES * max(median(found.spacings), interval)
    return None if over else found


def _newest(view: QueryView, batches: Sequence[Progress]) -> Sequence[Progress]:
    since = view.now - max(WINDOW_SECONDS, LOOKBACK_BATCHES / 2 * view.interval)
    return [each for each in batches[-LOOKBACK_BATCHES:] if each.started >= since]


def _split(view: QueryView, batches: Sequence[Progress]) -> Stalls:
    usual = median([batch.duration for batch in batches]) if batches else 0.0
    least = max(FAR_TIMES * usual, usual + LONG_SECONDS, OVER_RATIO * view.interval)
    long = [place for place, batch in enumerate(batches) if batch.duration > least]
    if not long:
        return Stalls(batches, usual, [], [], 0.0)
    rows = max(1.0, median([batch.rows for batch in batches]))
    far = [  # also with as many rows as the others
        n for n in long if batches[n].duration / max(1.0, batches[n].rows / rows) > CLEAR_TIMES * usual
    ]
    written = median([batch.phases.get("add_batch", 0.0) for batch in batches])
    shares = _waiting_shares(view, {place: batches[place] for place in far}, usual, written)
    waited = [place for place in far if shares[place] >= MOSTLY]
    if 2 * len(waited) <= len(far):  # something else does more
        return Stalls(batches, usual, [], [], 0.0)
    return Stalls(
        batches,
        usual,
        [batches[place] for place in waited],
        [batches[place] for place in waited if place - 1 not in long],  # one that lasts is one event
        median([shares[place] for place in waited]),
    )


def _waiting_shares(
    view: QueryView, batches: Mapping[int, Progress], usual: float, written: float
) -> Mapping[int, float]:
    """The share of what each batch takes beyond the usual in which no task computes. One whose tasks are not known is
    like the others; where none are known, the share by which writing takes longer than the usual `written` seconds."""
    shares = {place: _known_share(view, batch, usual) for place, batch in batches.items()}
    known = {place: share for place, share in shares.items() if share is not None}
    if known:
        return dict.fromkeys(batches, median(known.values())) | known
    return {
        place: min(1.0, (batch.phases.get("add_batch", 0.0) - written) / (batch.duration - usual))
        for place, batch in batches.items()
    }


def _known_share(view: QueryView, batch: Progress, usual: float) -> float | None:
    known, excess = split_of(view, batch), batch.duration - usual
    if known is None or not known.stages:
        return None
    waiting, uneven = (
        min(1.0, sum(known.seconds.get(part, 0.0) for part in parts) / excess)
        for parts in ((*DRIVER, "sink_wait", "waiting"), UNEVEN)
    )
    return waiting - uneven  # one slow task makes the others wait, too


def rewrites_log(view: QueryView, found: Stalls) -> bool:
    """Whether each is a batch in which Spark's file sink writes its log, with all files of its folder, as one entry."""
    last_of_ten = all((each.batch_id + 1) % COMPACTION_BATCHES == 0 for each in found.events)
    return last_of_ten and sink_kind(view) == "files"


def explained(view: QueryView, found: Stalls) -> bool:
    """Whether something else makes them slow: the sink keeps nothing, or Spark tidies up, collects garbage, saves or
    removes state, or has no cores."""
    if sink_kind(view) == "none":
        return True
    tidies = view.run.stateful and len({each.batch_id % COMPACTION_BATCHES for each in found.events}) == 1
    return tidies or _collected(view, found) or _by_state(found) or contention(view) is not None


def _by_state(found: Stalls) -> bool:
    """Whether the work on the state took half of the excess, over all tasks, or far more rows left it than usual."""
    seconds = median(batch.state_seconds / (batch.duration - found.usual) for batch in found.slow)
    removed, usually = (
        median(sum(each.removed for each in batch.operators) for batch in some) for some in (found.slow, found.batches)
    )
    return seconds >= MOSTLY or removed > CLEAR_TIMES * usually


def _collected(view: QueryView, found: Stalls) -> bool:
    """Whether the executors collected garbage for half of all the excess."""
    samples = [host for host in view.hosts if host.at >= found.batches[0].started and host.executors]
    if len(samples) < 2:
        return False
    first = {each.executor_id: each.gc_seconds for each in samples[0].executors}
    grown = [each.gc_seconds - first[each.executor_id] for each in samples[-1].executors if each.executor_id in first]
    return max(grown, default=0.0) >= MOSTLY * found.lost
