"""Whether and since when a query falls behind, and how many rows arrive against those it can process."""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from math import prod
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis.facts.unread import MIN_LAG_SECONDS, MIN_PEAK_SHARE, unread
from ledgerops.diagnosis.limits import CLEAR_TIMES, NOISE_SHARE, SHOWN_BATCHES, VERY_LONG_SECONDS
from ledgerops.model import head_table
from ledgerops.model.history import backlog
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import CHANGED_RATIO, OVER_RATIO, RECENT_BATCHES
from ledgerops.signals.lag import lefts
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rates import arrival_between, read_over, rows_of
from ledgerops.signals.theil_sen import fit_line

MIN_ARRIVAL_RATIO = 1.15  # arrival over processing rate; less may be the noise of a few batches
MIN_GROWTH_RATIO = 1.2  # batch time over the time in which its rows arrived: the next batch will have more rows
MIN_BATCH_LAG_SECONDS = 15.0  # where only batch times show it: a hiccup of the machine also makes a few batches longer
SERIES_BATCHES = 12  # newest batches that are checked for growth
MIN_SERIES = 4
MIN_RISING_SHARE = 0.75  # of the steps that must rise: a single quick batch does not end a trend
MIN_FEW_SECONDS = 30.0  # that three batches must add up to for a trend; of shorter ones five are needed


class Growth(NamedTuple):
    """How a query falls behind. `form` is "backlog" where rows are left in the source, "files" where files are,
    "commits" where commits of a table are, "batches" where each batch takes all there is and so gets longer and
    longer. `lag` is how late results are, in seconds."""

    form: str
    since: float
    batches: int
    first: float  # offsets, seconds that a file waited, or seconds of batch duration
    last: float
    lag: float


def piled_up_before(sizes: Sequence[int]) -> bool:
    """Whether what the batches of a run left in the source had piled up before the run: at first it was the most."""
    return sizes.index(max(sizes)) <= RECENT_BATCHES


@once
def growth(view: QueryView) -> Growth | None:
    """How the query falls behind; None when it does not, or when there are too few batches to tell."""
    if view.run.is_idle or view.plan.ends_itself:
        return None
    if grown := _growing_backlog(view):
        return grown
    if wait := unread(view):
        return Growth(wait.form, wait.since, wait.batches, wait.first, wait.last, wait.last)
    return _growing_batches(view) or _rising_trend(view)


def _growing_backlog(view: QueryView) -> Growth | None:
    """The backlog has risen in most batches since its lowest point and is at its highest now."""
    if view.lag.backlog == 0:
        return None
    series = lefts(view.baseline.steady[-SERIES_BATCHES:])
    if len(series) < MIN_SERIES:
        return None
    sizes = [left for _, left in series]
    lowest = len(sizes) - 1 - sizes[::-1].index(min(sizes))
    rising = sizes[lowest:]
    steps = [later > earlier for earlier, later in pairwise(rising)]
    if len(rising) < MIN_SERIES or sum(steps) < MIN_RISING_SHARE * len(steps):
        return None
    if rising[-1] < MIN_PEAK_SHARE * max(rising) or not _loses(series[lowest][0], series[-1][0]):
        return None
    lag = view.lag.seconds or 0.0
    if lag < max(MIN_LAG_SECONDS, 2 * view.interval):
        return None
    return Growth("backlog", series[lowest][0].started, len(rising), rising[0], rising[-1], lag)


def _loses(before: Progress, batch: Progress) -> bool:
    """Whether what is left in one of the sources has grown by more than noise, against what came into it meanwhile."""
    return any(
        later.left - earlier.left >= max(1, NOISE_SHARE * (sum(later.latest.values()) - sum(earlier.latest.values())))
        for earlier, later in zip(before.sources, batch.sources, strict=False)
        if later.latest and later.read
    )


def _growing_batches(view: QueryView) -> Growth | None:
    """Without a limit on its batches a query reads all there is: overload shows as batches that get longer.

    The batch that runs now counts with the time it has run, as soon as that is long enough to say something; until
    then what the batches before it proved still holds.
    """
    running = view.run.unfinished_seconds
    if not view.batches or (running is None and view.batches[-1].duration < view.interval):
        return None  # its rows took longer to come
    if not took_all(view.batches[-1]):
        return None
    times = _turns(_newest(view))
    if running is not None:
        ended = view.history.ended
        began = (ended.at if ended is not None else view.now) - running
        waited = began - times[-1].began
        if running >= waited:  # and it still runs
            grown = _chain(view, [*times, Turn(began, running, times[-1].asked + waited)], unfinished=True)
            if grown is not None:
                return grown
    return _chain(view, times)


def took_all(batch: Progress) -> bool:
    """Whether a batch had rows and, as far as its sources tell, left hardly any: the time of a batch that is capped
    says nothing about the rows that come meanwhile."""
    return batch.rows > 0 and (backlog(batch) or 0) <= NOISE_SHARE * batch.rows


def _newest(view: QueryView) -> Sequence[Progress]:
    """The settled batches. Of batches of minutes there are few: then the first one says at least when the rows of the
    second began to come."""
    settled = view.baseline.settled[-SERIES_BATCHES:]
    return settled if len(settled) > RECENT_BATCHES else view.batches[-RECENT_BATCHES - 1 :]


def _rising_trend(view: QueryView) -> Growth | None:
    """Batches that each take a little longer than their rows took to come, and will go on until results are too old.

    Where batches run back to back their time converges to overhead / (1 - utilisation), with utilisation = rows that
    arrive in a second x seconds that a row takes. From 1 on it grows without end. Of long batches three are enough.
    """
    batches = [batch for batch in _newest(view) if batch.rows > 0]
    if len(batches) <= RECENT_BATCHES:
        return None
    if view.interval and (max(each.duration for each in batches[-2:]) <= view.interval or view.baseline.usual):
        return None  # the interval and the batches that kept it say more
    if not took_all(view.batches[-1]):
        return None
    turns = _turns(batches)
    came = [max(view.interval, turn.asked - before.asked) for before, turn in pairwise(turns)]
    ratios = [turn.seconds / gap for turn, gap in zip(turns[1:], came, strict=True) if gap > 0][-SHOWN_BATCHES:]
    several = len(ratios) == SHOWN_BATCHES and sum(each > 1 for each in ratios) >= MIN_SERIES
    newest = ratios if several else ratios[-RECENT_BATCHES:]
    chain = turns[-len(newest) :]
    few = len(newest) == RECENT_BATCHES and min(newest) > 1 and sum(each.seconds for each in chain) >= MIN_FEW_SECONDS
    if not (several or few) or median(newest) < OVER_RATIO:
        return None
    line = fit_line([batch.rows for batch in batches], [batch.duration for batch in batches])
    if line is None or line.slope <= 0:
        return None
    arrival = median(batch.rows / gap for batch, gap in zip(batches[1:], came, strict=True) if gap > 0)
    spare = 1 - arrival * line.slope
    if spare > 0 and 2 * line.overhead / spare <= view.freshness:
        return None  # it settles before anybody has to wait too long
    lag = view.now - head_table.offsets_read_at(batches[-2])
    if lag < MIN_LAG_SECONDS or chain[-1].seconds < MIN_GROWTH_RATIO * chain[0].seconds:
        return None  # short batches that are all alike take as long as their rows take to come, give or take a moment
    return Growth("batches", chain[0].began, len(chain), chain[0].seconds, chain[-1].seconds, lag)


class Turn(NamedTuple):
    """When a batch began, how long it took, and when it read the heads: its rows came since the one before did."""

    began: float
    seconds: float
    asked: float


def _turns(batches: Sequence[Progress]) -> list[Turn]:
    return [Turn(batch.started, batch.duration, head_table.offsets_read_at(batch)) for batch in batches]


def _chain(view: QueryView, times: Sequence[Turn], unfinished: bool = False) -> Growth | None:
    """The newest batches of which every one took longer than its rows took to come."""
    ratios: list[float] = []
    for before, turn in zip(reversed(times[:-1]), reversed(times[1:]), strict=True):
        came_in = max(view.interval, turn.asked - before.asked)
        if came_in <= 0 or turn.seconds < (1.0 if unfinished and not ratios else MIN_GROWTH_RATIO) * came_in:
            break
        ratios.append(turn.seconds / came_in)
    if not ratios:
        return None
    chain = times[-len(ratios) :]
    # without an interval no rhythm was promised, so a burst must be over before it counts; rows that take longer than
    # they used to are not a burst
    lost = view.baseline.slowdown
    patience = 1.0 if view.interval or (lost is not None and lost.factor >= CLEAR_TIMES) else 2.0
    grown, took, least = prod(ratios), sum(each.seconds for each in chain), MIN_BATCH_LAG_SECONDS * patience
    several = len(chain) >= RECENT_BATCHES and grown >= CLEAR_TIMES and took >= VERY_LONG_SECONDS * patience
    # of a run of few batches two are enough, once more proof would take minutes: it has no past to return to
    few = len(chain) >= 2 and len(view.baseline.settled) < RECENT_BATCHES and took >= VERY_LONG_SECONDS
    several = several or (few and grown >= CHANGED_RATIO * patience)
    alone = ratios[0] >= 1.5 and chain[-1].seconds >= least and _swelled(view, chain[-1].began)
    lag = view.now - times[-2].asked  # the oldest row of a batch came when the one before it had asked for its offsets
    if not (several or alone) or lag < least:
        return None
    return Growth("batches", chain[0].began, len(chain), chain[0].seconds, chain[-1].seconds, lag)


def _swelled(view: QueryView, began: float) -> bool:
    """Whether the newest batch is the one that began then, had twice the rows of the one before it, and did not crawl.

    A batch that is merely held up (a busy machine, a pause) does fewer rows a second than the others. One without rows
    tells nothing of that: the one after it may pay for warm-up.
    """
    if len(view.batches) < 2 or view.batches[-1].started != began:
        return False
    before, newest = view.batches[-2:]
    crawls = CLEAR_TIMES * newest.rows * before.duration < before.rows * newest.duration
    return 0 < CLEAR_TIMES * before.rows <= newest.rows and not crawls


class Load(NamedTuple):
    """Rows per second that arrive, and that are processed at full load: of all sources, or of those only that say what
    arrives. `told` is what these say, by source."""

    arrival: float
    processed: float
    told: Mapping[str, float]
    sources: Collection[str] | None = None  # that it is of; None for all

    @property
    def ratio(self) -> float | None:
        """Arrival over processing rate; None where nothing was processed."""
        return self.arrival / self.processed if self.processed > 0 else None


@once
def load(view: QueryView) -> Load | None:
    """Over the latest batches. A batch that waits for its trigger counts with the whole interval. Where clearly more
    than usual comes to the sources that say what does, these alone: the rows of others do not make up for it."""
    latest = view.batches[-RECENT_BATCHES:]
    if len(latest) < 2:
        return None
    spent = sum(max(batch.duration, view.interval) for batch in latest)
    if spent <= 0:
        return None
    arrived = arrival_between(latest[0], latest[-1], view.rates.rows_per_offset)
    if not arrived and view.plan.rate_limits:
        return None
    others = {source.name for source in latest[-1].sources} - arrived.keys()
    read, told = read_over(latest, others) if others else 0.0, sum(arrived.values())
    usual = read_over(view.baseline.usual, arrived) if others else None
    if usual is not None and told > MIN_ARRIVAL_RATIO * usual > 0:
        return Load(told, sum(rows_of(batch, arrived) for batch in latest) / spent, arrived, tuple(arrived))
    # files and rates have no heads; uncapped, a batch reads all there is
    return None if read is None else Load(told + read, sum(batch.rows for batch in latest) / spent, arrived)


def least_ratio(view: QueryView) -> float:
    """Of arrival over processing rate, from which more arrives: any more, for a query that was never quicker."""
    return MIN_ARRIVAL_RATIO if view.baseline.usual else OVER_RATIO
