"""What is known of a query that bears on what it can sustain: read once from a view, then used for many questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ledgerops.analysis.capacity.fit import Fit, fit, observed
from ledgerops.analysis.capacity.stages import Stages, stages_of
from ledgerops.common.format import instant
from ledgerops.diagnosis.harm import Harm, harm
from ledgerops.diagnosis.profile import profile, shown
from ledgerops.model.records import Progress
from ledgerops.model.spark_progress import format_instant
from ledgerops.signals.baseline import CHANGED_RATIO, RECENT_BATCHES
from ledgerops.signals.capacity import FIT_BATCHES, MIN_FIT_BATCHES, OBSERVED
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import cap_of
from ledgerops.signals.trigger import BUSY_BATCHES

MIN_DRIFT_SHARE = 0.2  # change of batch time at equal rows that is noted


@dataclass(frozen=True, slots=True)
class Situation:
    """One query at one moment. None = unknown."""

    query: str
    freshness: float  # the objective: how old results may be, in seconds
    trigger: float | None = None  # seconds; 0.0 = back to back
    arrival: float | None = None  # rows a second, by the heads of the sources; else what was read
    harm: Harm | None = None  # how it is harmed now, as the diagnosis says
    backlog: float | None = None  # rows not read yet
    lag: float | None = None  # seconds
    cap: tuple[str, float] | None = None  # the option that caps a batch, and its rows
    fit: Fit | None = None
    reason: str = ""  # why there is no fit
    shown: float | None = None  # rows a second that it has carried
    stages: Stages | None = None
    parts: Mapping[str, float] = field(default_factory=dict)  # seconds of a typical batch, by part
    key: str | None = None  # column of the hottest key, where it was observed
    notes: tuple[str, ...] = ()


def situation(view: QueryView) -> Situation:
    """From the run's newest FIT_BATCHES batches with rows, without its warm-up, and once they take far longer than they
    did, without those before."""
    notes: list[str] = []
    batches = [batch for batch in view.baseline.steady[-FIT_BATCHES:] if batch.rows > 0]
    lost, usual = view.baseline.slowdown, view.baseline.usual
    if lost is not None and lost.factor >= CHANGED_RATIO:
        since = [batch for batch in batches if batch.started >= usual[-1].ended]
        enough = len(since) >= MIN_FIT_BATCHES
        batches = since if enough else batches
        notes.append(
            f"for as many rows a batch takes {lost.factor:.1f} times as long as it did until "
            f"{instant(format_instant(usual[-1].ended))}: "
            + ("only batches since then count" if enough else "these estimates are from before that")
        )
    found = fit([batch.rows for batch in batches], [batch.duration for batch in batches])
    if isinstance(found, str) and view.capacity.estimate.reason == OBSERVED:
        newest = [b for b in batches[-BUSY_BATCHES:] if b.duration >= view.interval] or batches[-3:]
        found = observed([batch.rows for batch in newest], [batch.duration for batch in newest])
    arrival = view.rates.arrival
    if arrival is None and view.rates.read_by_source:
        arrival = sum(view.rates.read_by_source.values())
        notes.append("no source reports its head offsets: the arrival rate is the input rate")
    if not isinstance(found, str) and found.drift is not None and abs(found.drift - 1) > MIN_DRIFT_SHARE:
        change = f"{abs(found.drift - 1):.0%} {'longer' if found.drift > 1 else 'shorter'}"
        notes.append(
            f"for the same number of rows the newest third of the batches takes {change} than the oldest third: "
            "these estimates use both and may be wrong by as much"
        )
    factor = min(view.rates.rows_per_offset.values(), default=1.0)
    return Situation(
        query=view.query, freshness=view.freshness, trigger=view.trigger.interval, arrival=arrival,
        harm=harm(view), lag=view.lag.seconds,
        backlog=None if view.lag.unread_offsets is None else view.lag.unread_offsets * factor,
        cap=_cap(view, factor), fit=None if isinstance(found, str) else found,
        reason=found if isinstance(found, str) else "", shown=_shown(batches, view.trigger.interval),
        stages=stages_of(view, batches), parts={each.part: each.seconds for each in shown(profile(view))},
        key=view.skew.key_column or next(iter(view.plan.keys), None), notes=tuple(notes),
    )  # fmt: skip


def _shown(batches: Sequence[Progress], interval: float | None) -> float | None:
    """The most rows over time in RECENT batches in a row, each of which had a whole interval to itself."""
    best = None
    for last in range(RECENT_BATCHES, len(batches) + 1):
        some = batches[last - RECENT_BATCHES : last]
        spent = sum(max(batch.duration, interval or 0.0) for batch in some)
        if spent > 0:
            best = max(best or 0.0, sum(batch.rows for batch in some) / spent)
    return best


def _cap(view: QueryView, factor: float) -> tuple[str, float] | None:
    """The smallest cap in rows; with several sources each has its own, and what they add up to is not known."""
    if view.last is None or len(view.last.sources) != 1:
        return None
    cap = cap_of(view)
    return None if cap is None else (cap[0], cap[1] * factor)
