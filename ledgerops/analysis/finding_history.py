"""Findings over time: from verdict after verdict, when each began and ended, and the runs and statuses of the query.

A finding that ends and soon begins again is one period: a problem that comes and goes is one problem, not many.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from ledgerops.diagnosis.engine import HANG, TIMED, reached
from ledgerops.diagnosis.rules import BY_SLUG, RULES
from ledgerops.model.finding import SEVERITIES, Finding, Severity, Status, Verdict
from ledgerops.model.history import MAX_ENDS, History

MAX_GAP_SECONDS = 60.0  # thirty batches at a 2 s trigger
MIN_STATUS_SECONDS = 15.0  # a status or root cause that goes back sooner was not a change
BEGIN_SECONDS = 5.0  # that a cause may seem to begin after what it explains: batches tell of both
MIN_COVERED_SHARE = 0.5  # of the time of what a cause explains, during which the cause must have held
LOST = "vanished"  # why a run ended of whose end there was no report
OVER: tuple[Status, ...] = ("failed", "stopped", "lost")


class Change(NamedTuple):
    """From `at` on something has this value."""

    at: float
    value: str


class Run(NamedTuple):
    """A run of the query began."""

    at: float
    number: int  # counted from 1, over all that is remembered of the query's name
    run_id: str


@dataclass(slots=True)
class FindingPeriod:
    """One finding from when it began until it was gone; `until` is None while it holds."""

    query: str
    finding: Finding  # as it was first reported; severity is the highest that it had
    began: float
    seen: float  # when it was first reported: the rules need some batches to be sure
    until: float | None = None
    times: int = 1  # how often it came, short gaps left out
    by: dict[str, int] = field(default_factory=dict)  # root cause that explained it -> in how many verdicts
    rooted: int = 0  # in how many verdicts it was a root cause itself
    root: Finding | None = None  # as reported as a root cause at its worst, with what was ruled out
    with_run: bool = False  # it ended because its run had ended

    @property
    def causes(self) -> tuple[str, ...]:
        """What explained it then: the root cause that did so most often, none where it mostly stood for itself."""
        best = max(self.by, key=lambda rule: (self.by[rule], rule), default=None)
        return (best,) if best is not None and self.by[best] >= self.rooted else ()


class FindingHistory:
    """Takes the verdicts on one query, oldest first."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.periods: list[FindingPeriod] = []
        self.statuses: list[Change] = []
        self.roots: list[Change] = []  # the first root cause's rule, "" for none
        self.runs: list[Run] = []
        self.ends: list[tuple[float, str | None]] = []  # with the reason where a run failed
        self.worst: Verdict | None = None  # the one of the lowest health that names a root cause, the surest of them
        self.last: float = 0.0
        self._open: dict[tuple[str, str, str], FindingPeriod] = {}

    def take(self, verdict: Verdict, history: History) -> None:
        """Adds one verdict, newer than those before, and the runs and ends that `history` has at that time."""
        self.last = verdict.at
        self._note_runs(history)
        _note(self.statuses, verdict.at, verdict.status)
        _note(self.roots, verdict.at, verdict.root_causes[0].rule if verdict.root_causes else "")
        if verdict.root_causes and (self.worst is None or _gravity(verdict) > _gravity(self.worst)):
            self.worst = verdict
        held = {}
        for finding in verdict.findings:
            key = finding.identity
            held[key] = self._open.get(key) or self._begin(finding, verdict.at)
            _raise(held[key], finding.severity)
        for root in verdict.root_causes:
            for key, period in held.items():
                if key[0] == root.rule:
                    period.rooted += 1
                    if period.root is None or _urgency(root) >= _urgency(period.root):
                        period.root = root
                    _raise(period, root.severity)
                elif key[0] in root.explains:
                    period.by[root.rule] = period.by.get(root.rule, 0) + 1
        for key, period in self._open.items():
            if key not in held:
                end = _end_of_its_run(period, verdict.at, history)
                period.with_run = end is not None
                over = verdict.at if end is None else min(end, verdict.at)
                period.until = max(period.began, over)  # the clock may have been set back meanwhile
        self._open = held

    @property
    def unrecorded_ends(self) -> Sequence[float]:
        """When runs began although nothing was recorded of how the one before ended, as of a driver that is killed."""
        ends = [*sorted(at for at, _ in self.ends), math.inf]
        return [
            run.at for before, run in pairwise(self.runs) if before.at < run.at < ends[bisect_left(ends, before.at)]
        ]

    def causes(self, period: FindingPeriod) -> tuple[str, ...]:
        """What explains it, told then or later: of a batch that hangs the cause may be known after its end only."""
        later = self.later_cause(period)
        return period.causes or (() if later is None else (later.finding.rule,))

    def later_cause(self, period: FindingPeriod) -> FindingPeriod | None:
        """What explains it as is known by now; of a chain its beginning."""
        cause = next((each for each in self.periods if self._tells(each, period)), None)
        return None if cause is None else self.later_cause(cause) or cause

    def _tells(self, cause: FindingPeriod, period: FindingPeriod) -> bool:
        """Whether a root cause began no later than another period, held for most of it, and explains it: by its rule,
        or as what took the time of a batch that hung and ended."""
        over = self.last if cause.until is None else min(cause.until, self.last)
        if over < period.began or cause.began > period.began + BEGIN_SECONDS or cause.root is None:
            return False  # first, as most of a long recording are of another time
        until = self.last if period.until is None else min(period.until, self.last)
        if (
            cause.causes  # another one explained it then
            or cause.finding.severity == "info"
            or min(until, over) - max(cause.began, period.began) < MIN_COVERED_SHARE * (until - period.began)
        ):
            return False
        if period.finding.rule == HANG and cause.finding.rule in TIMED:
            return cause.seen > period.seen and (cause.root.share or 0.0) >= MIN_COVERED_SHARE
        return period.finding.rule in reached(cause.finding.rule, RULES)

    def _begin(self, finding: Finding, at: float) -> FindingPeriod:
        for earlier in reversed(self.periods):
            if earlier.finding.identity != finding.identity or earlier.until is None:
                continue
            if finding.since - earlier.until > MAX_GAP_SECONDS:
                break
            earlier.until, earlier.with_run, earlier.times = None, False, earlier.times + 1
            return earlier
        made = FindingPeriod(self.query, finding, min(finding.since, at), at)
        self.periods.append(made)
        return made

    def _note_runs(self, history: History) -> None:
        if history.run_id is not None and (not self.runs or history.run_id != self.runs[-1].run_id):
            began = history.started_at if history.started_at is not None else self.last
            ids = [each.run_id for each in self.runs]
            if history.run_id in ids:  # those after it were of another session's query, which has its own name now
                del self.runs[ids.index(history.run_id) + 1 :]
            else:
                self.runs.append(Run(began, history.restarts + 1, history.run_id))
        known = {at for at, _ in self.ends[-2 * MAX_ENDS :]}
        self.ends += [
            (end.at, LOST if end.lost else None if end.exception is None else end.error_class or end.exception)
            for end in history.ends
            if end.at not in known and not end.unrecorded
        ]


def _end_of_its_run(period: FindingPeriod, at: float, history: History) -> float | None:
    """When the run ended with which a finding ended, or the next one began: of a driver that is killed no end is known,
    and a finding lingers for some seconds. None where it ended by itself."""
    if history.ended is not None:
        return history.ended.at
    began = history.started_at
    lingers = BY_SLUG[period.finding.rule].linger if period.finding.rule in BY_SLUG else 0.0
    return began if began is not None and period.seen < began and at - began <= lingers + MIN_STATUS_SECONDS else None


def _gravity(verdict: Verdict) -> tuple[int, int, float]:
    return -verdict.health, len(verdict.findings), sum(cause.confidence for cause in verdict.root_causes)


def _urgency(root: Finding) -> tuple[int, bool, float]:
    """The worst moment of a cause, then one at which rows were about to be lost, then the surest."""
    prevents = any(step.prevents for step in root.remedies[:1])
    return SEVERITIES.index(root.severity), prevents, root.confidence


def _note(changes: list[Change], at: float, value: str) -> None:
    if not changes or changes[-1].value != value:
        changes.append(Change(at, value))


def _raise(period: FindingPeriod, severity: Severity) -> None:
    if SEVERITIES.index(severity) > SEVERITIES.index(period.finding.severity):
        period.finding = replace(period.finding, severity=severity)


def settled(changes: Iterable[Change], alike: Sequence[str] = ()) -> list[Change]:
    """Changes without those that were reversed within MIN_STATUS_SECONDS; values in `alike` count as one."""
    kept: list[Change] = []
    for change in changes:
        same = kept and (kept[-1].value == change.value or {kept[-1].value, change.value} <= set(alike))
        if same:
            continue
        if len(kept) > 1 and change.at - kept[-1].at < MIN_STATUS_SECONDS:
            before = kept[-2].value
            if before == change.value or {before, change.value} <= set(alike):
                kept.pop()
                continue
        kept.append(change)
    return kept
