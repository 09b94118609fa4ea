"""Why a run failed its objectives: what the diagnosis found in its recording, and whether too much was offered.

The rules speak of a query that falls behind for good, and are silent while batches only outlast their interval. A load
test knows more, the plan: where more was offered than the capacity by this run's own batches (`ledgerops capacity`),
the cause is input-overload, whether or not the backlog has begun to grow yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ledgerops.analysis.capacity.answer import Question, answer
from ledgerops.analysis.capacity.fit import Interval, fit
from ledgerops.analysis.capacity.inputs import views
from ledgerops.analysis.capacity.situation import Situation, situation
from ledgerops.analysis.finding_history import FindingPeriod
from ledgerops.analysis.plot_series import Track
from ledgerops.analysis.session import Investigation
from ledgerops.common import format
from ledgerops.errors import UserError
from ledgerops.load.test.estimate import COLD_BATCHES
from ledgerops.load.test.measure import Measured
from ledgerops.model.finding import Finding
from ledgerops.signals.query_view import QueryView

OVERLOAD = "input-overload"
SYMPTOMS = frozenset({"falling-behind", "trigger-overrun", "freshness-breach", "catching-up"})
# what bounds the capacity rather than what changed: behind an overload they say what to improve
LIMITS = frozenset(
    {"python-bound", "table-scan", "cpu-saturated", "small-batch-overhead", "too-many-tasks", "gc-pressure"}
)
PEAK_SECONDS = 10.0  # a load that lasts as long counts as offered
#: Batches of full load that a fit takes for each batch of the warm-up: it needs a tenth of all at either end.
FULL_PER_WARM_UP_BATCH = 4
NEAR_CAPACITY_SHARE = 0.85  # of the capacity by the fit: above it the error of the fit decides
MIN_PROCESSED_SHARE = 0.97  # of what was offered: less was processed than that, and the query falls behind


@dataclass(frozen=True, slots=True)
class Cause:
    """A rule's slug with what it rests on, in a few words."""

    rule: str
    because: str

    @property
    def text(self) -> str:
        """`input-overload (120% of the capacity was offered)`"""
        return f"{self.rule} ({self.because})"


@dataclass(frozen=True)
class Findings:
    """What a recording shows of one job."""

    periods: Sequence[FindingPeriod]  # findings with begin and end, at warning or above
    track: Track | None  # the figures of its batches
    sustainable: Interval | None  # rows a second; None where it is unknown, for the reason in `unknown_because`
    unknown_because: str
    causes: Sequence[Cause]  # best first; empty where nothing explains anything


def examine(recording: Path, runs: Sequence[Measured]) -> list[Findings]:
    """Diagnoses the recording as `ledgerops diagnose` does, with the history of each job."""
    investigation = Investigation(str(recording), with_timeline=True, plots=True)
    try:
        investigation.diagnose()
    except UserError as error:
        return [Findings((), None, None, str(error), _died(measured)) for measured in runs]
    return [_findings(investigation, measured) for measured in runs]


def _findings(investigation: Investigation, measured: Measured) -> Findings:
    job, replay = measured.job, investigation.replay
    try:
        [view] = views(replay, replay.named(job, investigation.place), replay.at or 0.0)
    except UserError as error:
        return Findings((), None, None, str(error), _died(measured))
    finding_history = investigation.findings.get(job)
    periods = [each for each in finding_history.periods if each.finding.severity != "info"] if finding_history else []
    periods = [
        each for each in periods if each.began <= measured.end and (each.until is None or each.until >= measured.begin)
    ]
    known = answer(_situation(view, measured), Question())
    sustainable = known.sustainable
    unknown_because = "; ".join(known.unknown_because)
    return Findings(
        periods, investigation.tracks.get(job), sustainable, unknown_because, causes(measured, periods, sustainable)
    )


def _situation(view: QueryView, measured: Measured) -> Situation:
    """The situation, with the small batches of the warm-up where all others have one size: a line needs two ends.

    The diagnosis leaves out what begins in the first seconds of a run, which here are the only small batches. They are
    a little slow still, so the rate comes out some percent too high.
    """
    known = situation(view)
    if known.fit is not None:
        return known
    batches = [each for each in measured.done if each.last > each.first][COLD_BATCHES:]
    small = [each for each in batches if each.batch.ended < measured.begin]
    large = [each for each in batches if each.batch.ended >= measured.begin]
    if small:
        large = large[-FULL_PER_WARM_UP_BATCH * len(small) :]
    line = fit([each.last - each.first for each in small + large], [each.batch.duration for each in small + large])
    return known if isinstance(line, str) else replace(known, fit=line, reason="")


def causes(measured: Measured, periods: Sequence[FindingPeriod], sustainable: Interval | None) -> list[Cause]:
    """Roots that the diagnosis names first, then the overload by the plan, then what bounds the capacity."""
    rooted = sorted((each for each in periods if each.rooted), key=lambda each: each.began)
    named = [Cause(each.finding.rule, _because(each.finding, len(rooted) > 1)) for each in rooted]
    over = overload(measured, sustainable)
    roots = [each for each in named if each.rule not in SYMPTOMS | LIMITS | {OVERLOAD}]
    loads = [over] if over is not None else [each for each in named if each.rule == OVERLOAD]
    limits = [each for each in named if each.rule in LIMITS]
    symptoms = [each for each in named if each.rule in SYMPTOMS]
    found = [*_died(measured), *roots, *loads, *limits] or symptoms
    return [each for place, each in enumerate(found) if each.rule not in {other.rule for other in found[:place]}]


def _because(finding: Finding, several: bool) -> str:
    """What a finding says; of several, also what each takes of a typical batch, where it is known and not said yet."""
    seconds = finding.saving_seconds if several and " of a batch" not in finding.summary else None
    return finding.summary if seconds is None else f"{finding.summary}; {format.duration(seconds)} of a batch"


def overload(measured: Measured, sustainable: Interval | None) -> Cause | None:
    """The overload, if more was offered for PEAK_SECONDS than is sustainable, fits into a batch, or was processed."""
    offered = peak(measured)
    if sustainable is not None and sustainable.value > 0 and offered > sustainable.value:
        more = offered / sustainable.value - 1
        above = f"{more + 1:.1f} times" if more >= 1 else f"{more:.{0 if more >= 0.1 else 1}%} above"
        return Cause(
            OVERLOAD, f"offered {offered:,.0f} rows/s, {above} the sustainable rate of {sustainable.value:,.0f} rows/s"
        )
    middle, trigger = measured.batch_seconds(0.5), measured.trigger
    near = sustainable is not None and offered > NEAR_CAPACITY_SHARE * sustainable.value
    if near and trigger and middle is not None and middle > trigger:
        # the line is some percent too high: the batches themselves say that so many rows do not fit
        took = f"a batch takes {middle:.3g} s, trigger is {trigger:g} s"
        return Cause(OVERLOAD, f"offered {format.count(offered)} rows/s, at which {took}")
    processed = measured.processed
    if sustainable is None and processed is not None and processed < MIN_PROCESSED_SHARE:
        return Cause(OVERLOAD, f"{processed:.0%} of the {format.count(offered)} rows/s offered were processed")
    return None


def peak(measured: Measured) -> float:
    """Rows a second that were offered over PEAK_SECONDS, at most."""
    span = min(PEAK_SECONDS, measured.end - measured.begin)
    if span <= 0:
        return 0.0
    starts = np.arange(measured.begin, measured.end - span + 0.5, 1.0)
    return max((measured.arrivals.count(at + span) - measured.arrivals.count(at)) / span for at in starts)


def _died(measured: Measured) -> list[Cause]:
    return [Cause("query-failed", measured.error)] if measured.error else []
