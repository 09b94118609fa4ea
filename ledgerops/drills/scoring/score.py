"""The score of a drill: detection, precision, place, cause, remedy, reset.

The recording is replayed with a verdict on every query after each observation and each second in between. The points
are explained in docs/diagnosis.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ledgerops.diagnosis.cpu_contention import OTHER
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill, Fault
from ledgerops.drills.scoring.replay import GRID_SECONDS, replayed
from ledgerops.model.finding import SEVERITIES, Finding, Verdict
from ledgerops.model.records import Kind

RESET = 40.0  # seconds after the repair within which findings must be gone: linger and some batches
SETTLED = 20.0  # seconds between the end of a control's first batch and the change of its load
COUNTS = SEVERITIES.index("warning")


@dataclass
class Sighting:
    """One rule on one query: from when to when it was found at warning or above, and the last finding of it."""

    query: str
    rule: str
    first: float
    last: float
    finding: Finding


@dataclass(frozen=True)
class Named:
    """How one fault of a drill was diagnosed."""

    fault: Fault
    seconds: float | None  # from the effect to the finding; None: not within the deadline
    found: Finding | None
    place: bool
    remedy: bool
    root: bool  # a root cause in most verdicts from then to the repair
    first: bool  # and the first of them


@dataclass(frozen=True)
class Score:
    """A drill's result. `void`: the fault took no effect, so nothing is proven either way."""

    drill: str
    kind: str
    void: bool
    named: tuple[Named, ...]
    early: tuple[str, ...]  # rules found before the injection
    untrue: tuple[str, ...]  # rules found after it that are not true of it
    reset_seconds: float | None  # None: not gone by the end, or nothing to be gone
    points: float
    sightings: tuple[Sighting, ...] = field(default=(), compare=False)

    @property
    def passed(self) -> bool:
        """Every fault found in its place, as a root cause, in its order, and nothing that is not true; a control:
        nothing at all."""
        if self.void or self.early or self.untrue:
            return False
        met = all(each.seconds is not None and each.root and each.place for each in self.named)
        return met and (not self.named or self.named[0].first)


def score(
    drill: Drill, bundle: Bundle, without: Sequence[Kind] = (), verdicts: Iterable[Verdict] | None = None
) -> Score:
    """Compares the verdicts on a bundle with the truth: those of a replay without the records of some kinds, unless
    they are given.

    Raises UserError when the recording cannot be read.
    """
    times = bundle.times
    injected, repaired, ended = times["injected"], times["repaired"], times["ended"]
    verdicts = replayed(bundle, without) if verdicts is None else verdicts
    given = [verdict for verdict in verdicts if verdict.at <= ended]
    sightings = _sightings(given)
    effect = times.get("effect")
    void = effect is None if drill.effect is not None else not _began_well(bundle)
    void = void or bool(effect is not None and drill.recovers and effect > repaired)
    rules = {rule for fault in drill.truth.faults for rule in fault.rules} | set(drill.truth.may)
    early = tuple(sorted({each.rule for each in sightings if each.first < injected}))
    blamed = {bundle.names[fault.query] for fault in drill.truth.faults}
    untrue = {
        each.rule
        for each in sightings
        if each.rule not in (rules if each.query in blamed else drill.truth.elsewhere)
        and each.rule not in early
        and not (bundle.lanes > 1 and drill.kind != "control" and _of_other_drills(each))
    }
    named = tuple(_named(fault, drill, bundle, given, effect) for fault in drill.truth.faults)
    gone = [each.last - repaired for each in sightings if each.last >= repaired]
    still = any(each.last > ended - 2 * GRID_SECONDS for each in sightings)
    reset = max([0.0, *gone]) if any(each.seconds is not None for each in named) and not still else None
    points = _points(drill, named, early, tuple(untrue), reset)
    return Score(
        drill.name,
        drill.kind,
        void,
        named,
        early,
        tuple(sorted(untrue)),
        reset,
        points,
        tuple(sightings),
    )


def _sightings(given: Sequence[Verdict]) -> list[Sighting]:
    """Each rule on each query, from its first to its last verdict."""
    found: dict[tuple[str, str], Sighting] = {}
    for verdict in given:
        at = verdict.at
        for finding in verdict.findings:
            if SEVERITIES.index(finding.severity) < COUNTS:
                continue
            key = (verdict.query, finding.rule)
            if key not in found:
                found[key] = Sighting(verdict.query, finding.rule, at, at, finding)
            found[key].last, found[key].finding = at, finding
    return sorted(found.values(), key=lambda each: each.first)


def _named(fault: Fault, drill: Drill, bundle: Bundle, given: Sequence[Verdict], effect: float | None) -> Named:
    query = bundle.names[fault.query]
    injected, repaired = bundle.times["injected"], bundle.times["repaired"]
    since = injected if effect is None else effect
    until = max(repaired, since + drill.deadline) if drill.recovers else bundle.times["ended"]
    found_at: float | None = None
    finding: Finding | None = None
    for verdict in given:
        if verdict.query != query or not injected <= verdict.at <= until:
            continue
        match = next((each for each in verdict.root_causes if each.rule in fault.rules and _counts(each)), None)
        match = match or next((each for each in verdict.findings if each.rule in fault.rules and _counts(each)), None)
        if match is not None:
            found_at = verdict.at if found_at is None else found_at
            finding = match
    if found_at is None or finding is None or found_at - since > drill.deadline:
        return Named(fault, None, None, False, False, False, False)
    end, begin = max(repaired, found_at), max(found_at, since)
    during = [verdict for verdict in given if verdict.query == query and begin <= verdict.at <= end]
    rooted = [verdict for verdict in during if any(each.rule in fault.rules for each in verdict.root_causes)]
    leading = [verdict for verdict in rooted if verdict.root_causes[0].rule in fault.rules]
    return Named(
        fault,
        max(0.0, found_at - since),
        finding,
        _in_place(fault, finding, bundle),
        any(re.search(fault.remedy, f"{each.action} {each.why}", re.I) for each in finding.remedies)
        or not fault.remedy,
        2 * len(rooted) > len(during),
        2 * len(leading) > len(during),
    )


def _of_other_drills(each: Sighting) -> bool:
    """Whether the finding says that other processes use the cores: with other drills beside it, that is true."""
    return each.rule == "cpu-saturated" and each.finding.component.detail == OTHER


def _began_well(bundle: Bundle) -> bool:
    """Whether the first query of a healthy control ran steadily before the load changed."""
    done = [
        commit.done for role in list(bundle.names)[:1] for commit in bundle.commits(role) if commit.done is not None
    ]
    return not bundle.checkpoint().is_dir() or (bool(done) and done[0] <= bundle.times["injected"] - SETTLED)


def _counts(finding: Finding) -> bool:
    return SEVERITIES.index(finding.severity) >= COUNTS


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


def _points(
    drill: Drill, named: Sequence[Named], early: Sequence[str], untrue: Sequence[str], reset: float | None
) -> float:
    """Out of 100: detection 35 (less the later), precision 20, place 20, cause 20, remedy and reset 5. A control has
    100 or 0."""
    if drill.kind == "control":
        return 0.0 if early or untrue else 100.0
    if early or all(each.seconds is None for each in named):
        return 0.0
    share = 1 / max(1, len(named))
    points = 20.0 - min(20.0, 5.0 * len(untrue))
    for index, each in enumerate(named):
        if each.seconds is None:
            continue
        points += 35 * share * (1 - each.seconds / drill.deadline) ** 0.5 if each.seconds < drill.deadline else 0
        points += 20 * share * (each.place)
        points += 20 * share * (1.0 if (each.first if index == 0 else each.root) else 0.4 if each.root else 0.0)
        points += 2.5 * share * each.remedy
    return points + (2.5 if reset is not None and reset <= RESET else 0.0)
