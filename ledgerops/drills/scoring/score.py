"""The score of a drill: detection, precision, place, cause, remedy, reset.

The recording is replayed with a verdict on every query after each observation and each second in between.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ledgerops.diagnosis.facts.contention import OTHER
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import Case, Fault
from ledgerops.model import recording
from ledgerops.model.finding import SEVERITIES, Finding, Verdict
from ledgerops.runtime.replay import verdicts as replayed

GRID_SECONDS = 1.0  # between two verdicts while nothing is observed
MIN_SETTLED_SECONDS = 20.0  # between the end of a control's first batch and the change of its load
MIN_SEVERITY = SEVERITIES.index("warning")


@dataclass
class Sighting:
    """One rule on one query: from when to when it was found at warning or above, and the last finding of it."""

    query: str
    rule: str
    first: float
    last: float
    finding: Finding


@dataclass(frozen=True)
class FaultScore:
    """How one fault of a drill was diagnosed; without `seconds` it was not found within the deadline."""

    fault: Fault
    seconds: float | None = None  # from the effect to the finding
    in_place: bool = False
    has_remedy: bool = False
    is_root: bool = False  # a root cause in most verdicts from then to the repair
    is_first: bool = False  # and the first of them


@dataclass(frozen=True)
class Score:
    """A drill's result. `void`: the fault took no effect, so the drill shows nothing."""

    void: bool
    faults: tuple[FaultScore, ...]
    early: tuple[str, ...]  # rules found before the injection
    untrue: tuple[str, ...]  # rules found after it that are not true of it
    reset_seconds: float | None  # None: not gone by the end, or nothing to be gone
    sightings: tuple[Sighting, ...] = field(default=(), compare=False)

    @property
    def passed(self) -> bool:
        """Every fault found in its place, as a root cause, in its order, and nothing that is not true; a control:
        nothing at all."""
        if self.void or self.early or self.untrue:
            return False
        met = all(fault.seconds is not None and fault.is_root and fault.in_place for fault in self.faults)
        return met and (not self.faults or self.faults[0].is_first)


class Scored(NamedTuple):
    """A drill that was run, and its score."""

    drill: Case
    bundle: Bundle
    score: Score


def replay(bundle: Bundle) -> Iterator[Verdict]:
    """A verdict after each observation and each second in between, as for a user who keeps asking."""
    return replayed(recording.read(bundle.recording), every=GRID_SECONDS)


def score(drill: Case, bundle: Bundle, verdicts: Iterable[Verdict] | None = None) -> Score:
    """Compares the verdicts on a bundle with the truth: those of a replay, unless they are given. Raises UserError when
    the recording cannot be read."""
    injected, repaired, ended = (bundle.times[name] for name in ("injected", "repaired", "ended"))
    verdicts = replay(bundle) if verdicts is None else verdicts
    given = [verdict for verdict in verdicts if verdict.at <= ended]
    sightings = _sightings(given)
    early = tuple(sorted({sighting.rule for sighting in sightings if sighting.first < injected}))
    untrue = tuple(sorted(_untrue(drill, bundle, sightings).difference(early)))
    faults = tuple(_fault_score(fault, drill, bundle, given) for fault in drill.faults)
    found = any(fault.seconds is not None for fault in faults)
    reset = _reset_seconds(sightings, repaired, ended) if found else None
    return Score(
        void=_is_void(drill, bundle), faults=faults, early=early, untrue=untrue, reset_seconds=reset,
        sightings=tuple(sightings),
    )  # fmt: skip


def _is_void(drill: Case, bundle: Bundle) -> bool:
    """Whether the drill shows nothing: no effect, one after the repair, or a control that began badly."""
    if drill.effect is None:
        return not _began_well(bundle)
    effect = bundle.times.get("effect")
    return effect is None or (drill.recovers and effect > bundle.times["repaired"])


def _untrue(drill: Case, bundle: Bundle, sightings: Sequence[Sighting]) -> set[str]:
    """The rules of which some sighting is not true of its query."""
    of_faults = {rule for fault in drill.faults for rule in fault.rules} | set(drill.may)
    blamed = {bundle.names[fault.query] for fault in drill.faults}
    beside_others = bundle.stored.get("lanes", 1) > 1 and not drill.healthy
    return {
        sighting.rule
        for sighting in sightings
        if sighting.rule not in (of_faults if sighting.query in blamed else drill.elsewhere)
        # that other processes use the cores is true with other drills beside this one
        and not (beside_others and (sighting.rule, sighting.finding.component.detail) == ("cpu-saturated", OTHER))
    }


def _reset_seconds(sightings: Sequence[Sighting], repaired: float, ended: float) -> float | None:
    """From the repair until nothing was found any more; None: something was found at the end."""
    if any(sighting.last > ended - 2 * GRID_SECONDS for sighting in sightings):
        return None
    return max([0.0, *(sighting.last - repaired for sighting in sightings)])


def _sightings(given: Sequence[Verdict]) -> list[Sighting]:
    """Each rule on each query, from its first to its last verdict."""
    found: dict[tuple[str, str], Sighting] = {}
    for verdict in given:
        at = verdict.at
        for finding in verdict.findings:
            if not _counts(finding):
                continue
            key = (verdict.query, finding.rule)
            if key not in found:
                found[key] = Sighting(verdict.query, finding.rule, at, at, finding)
            found[key].last, found[key].finding = at, finding
    return sorted(found.values(), key=lambda sighting: sighting.first)


def _fault_score(fault: Fault, drill: Case, bundle: Bundle, given: Sequence[Verdict]) -> FaultScore:
    injected, repaired = bundle.times["injected"], bundle.times["repaired"]
    since = bundle.times.get("effect", injected)
    until = max(repaired, since + drill.deadline_seconds) if drill.recovers else bundle.times["ended"]
    about = [verdict for verdict in given if verdict.query == bundle.names[fault.query]]
    found_at: float | None = None
    last: Finding | None = None
    for verdict in about:
        if injected <= verdict.at <= until and (finding := _finding(verdict, fault)) is not None:
            found_at = verdict.at if found_at is None else found_at
            last = finding
    if found_at is None or last is None or found_at - since > drill.deadline_seconds:
        return FaultScore(fault)
    during = [verdict for verdict in about if max(found_at, since) <= verdict.at <= max(repaired, found_at)]
    rooted = [verdict for verdict in during if any(root.rule in fault.rules for root in verdict.root_causes)]
    leading = [verdict for verdict in rooted if verdict.root_causes[0].rule in fault.rules]
    remedies = (f"{remedy.action} {remedy.why}" for remedy in last.remedies)
    return FaultScore(
        fault,
        seconds=max(0.0, found_at - since),
        in_place=_in_place(fault, last, bundle),
        has_remedy=not fault.remedy or any(re.search(fault.remedy, text, re.IGNORECASE) for text in remedies),
        is_root=2 * len(rooted) > len(during),
        is_first=2 * len(leading) > len(during),
    )


def _finding(verdict: Verdict, fault: Fault) -> Finding | None:
    """The finding that names the fault, at best among the root causes."""
    every = (*verdict.root_causes, *verdict.findings)
    return next((finding for finding in every if finding.rule in fault.rules and _counts(finding)), None)


def _began_well(bundle: Bundle) -> bool:
    """Whether the first query of a healthy control ran steadily before the load changed."""
    done = [
        commit.done for role in list(bundle.names)[:1] for commit in bundle.commits(role) if commit.done is not None
    ]
    return not bundle.checkpoint().is_dir() or (
        bool(done) and done[0] <= bundle.times["injected"] - MIN_SETTLED_SECONDS
    )


def _counts(finding: Finding) -> bool:
    return SEVERITIES.index(finding.severity) >= MIN_SEVERITY


def _in_place(fault: Fault, finding: Finding, bundle: Bundle) -> bool:
    if not fault.component:
        return True
    place = f"{finding.component.name} {finding.component.detail or ''}"
    for wanted in fault.component:
        kind, _, pattern = wanted.partition("=")
        pattern = pattern.format(**{role: re.escape(name) for role, name in bundle.names.items()})
        if finding.component.kind == kind and re.search(pattern, place):
            return True
    return False
