"""Findings of all rules -> one verdict: root causes with what they explain, status, health and forecast."""

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from ledgerops.config import FRESHNESS_OBJECTIVE_SECONDS
from ledgerops.diagnosis.arbiter import arbitrate, outweighed
from ledgerops.diagnosis.causes import CAUSES
from ledgerops.diagnosis.facts import growth as falling
from ledgerops.diagnosis.facts.failures import application_error
from ledgerops.diagnosis.facts.waiting import elsewhere
from ledgerops.diagnosis.harm import examined, harm
from ledgerops.diagnosis.limits import MIN_BATCHES, MIN_CATCH_UP_SECONDS
from ledgerops.diagnosis.muting import NOTHING, Muted, is_muted
from ledgerops.diagnosis.profile import profile, shown
from ledgerops.diagnosis.proof import as_expected
from ledgerops.diagnosis.rule import Rule
from ledgerops.diagnosis.rules import RULES
from ledgerops.diagnosis.symptom import with_largest_part
from ledgerops.model.finding import SEVERITIES, EndedCause, Finding, Forecast, Part, RuledOut, Severity, Status, Verdict
from ledgerops.signals.query_view import QueryView

WEIGHTS: Mapping[Severity, float] = {"critical": 0.6, "warning": 0.25, "info": 0.05}
HANG = "query-stuck"  # a batch that has not ended: what takes its time is known after its end
STUCK = (HANG, "source-unreachable")  # the rules that say that nothing moves
TIMED = frozenset(cause.slug for cause in CAUSES)  # measured by batches that have ended
ENDED_SECONDS, MAX_ENDED = 3600.0, 20  # how long, and how many, root causes that are over are remembered
AFTERMATH_SECONDS = 300.0  # how long a query's findings are still reported after its end
ATTRIBUTION_SECONDS = 5.0  # how old the parts of a batch may be that nothing is wrong with


class Held(NamedTuple):
    """A finding, the same as it is told where no cause explains it, and when it was last seen."""

    finding: Finding
    alone: Finding
    seen: float


class Diagnoser:
    """Judges one query repeatedly: remembers since when each finding holds and how long it may linger.

    A rule that raises is counted in `errors` by its slug and finds nothing: a bug in one rule must not hide the rest.
    Findings of `muted` rules are set apart: they explain nothing, and the status does not follow them.
    """

    def __init__(
        self, rules: Sequence[Rule] = RULES, freshness: float = FRESHNESS_OBJECTIVE_SECONDS, muted: Muted = NOTHING
    ) -> None:
        self.rules = rules
        self.freshness = freshness
        self.muted = muted
        self.errors: Counter[str] = Counter()
        self._by_slug = {rule.slug: rule for rule in rules}
        self._held: dict[tuple[str, str, str], Held] = {}
        self._roots: dict[str, Finding] = {}  # at warning or above, of the verdict before
        self._judged = 0.0  # when that was
        self._ended: deque[EndedCause] = deque(maxlen=MAX_ENDED)
        self._parts: tuple[Part, ...] = ()  # where the time of a typical batch went
        self._parts_at = -math.inf  # when that was computed, and of which run
        self._parts_of: str | None = None

    def __call__(self, view: QueryView, brief: bool = False) -> Verdict:
        """`brief` leaves out forecast, figures and attribution, for intermediate verdicts of a replay."""
        now = view.now
        ended = view.history.ended
        if ended is not None:  # what was wrong at the end is what a post-mortem asks for
            view = view.at(ended.at, self.freshness)
        elif view.freshness != self.freshness:
            view = view.at(now, self.freshness)
        self._run_rules(view, long_over=ended is not None and now - ended.at > AFTERMATH_SECONDS)
        held = [each.finding for each in self._held.values()]
        muted = [finding for finding in held if is_muted(self.muted, finding.rule, view.query)]
        findings, left_out = arbitrate([each for each in held if each not in muted], harm(view))
        findings.sort(key=_rank)
        active = {finding.rule for finding in findings}
        cleared = self._cleared(view, active) if len(active) > 1 else frozenset()
        blamed = {finding.rule for finding in findings if finding.share != 0.0}
        reach = {slug: _explained(slug, self.rules, active, cleared) if slug in blamed else () for slug in active}
        for one, other in outweighed(findings) | elsewhere(view):
            reach[one] = tuple(each for each in reach.get(one, ()) if each != other)
        folded = {slug for explained in reach.values() for slug in explained}
        findings = [replace(finding, explains=reach[finding.rule]) for finding in findings]
        roots = [self._root(finding, findings, view, left_out) for finding in findings if finding.rule not in folded]
        roots = self._prevented(sorted(roots, key=_rank))
        status = _status(view, findings)
        self._note_ended({root.rule: root for root in roots if root.severity != "info"}, findings, now)
        return Verdict(
            query=view.query,
            at=now,
            status=status,
            health=_health(findings, status),
            root_causes=tuple(roots),
            findings=tuple(findings),
            ended=tuple(self._ended),
            forecast=Forecast() if brief else forecast(view),
            figures={} if brief else _figures(view),
            attribution=() if brief else self._attribution(view),
            muted=tuple(sorted(muted, key=_rank)),
        )

    def _attribution(self, view: QueryView) -> tuple[Part, ...]:
        """Where the time goes; of a query that runs well it is told anew every ATTRIBUTION_SECONDS."""
        old = not 0 <= view.now - self._parts_at < ATTRIBUTION_SECONDS
        if old or examined(view) or view.history.ended is not None or view.history.run_id != self._parts_of:
            self._parts, self._parts_at, self._parts_of = shown(profile(view)), view.now, view.history.run_id
        return self._parts

    def _note_ended(self, roots: Mapping[str, Finding], found: Iterable[Finding], now: float) -> None:
        """Remembers the root causes of the verdict before that are over: one that another explains now is not."""
        active = {finding.rule for finding in found if finding.severity != "info"}
        over = [finding for rule, finding in self._roots.items() if rule not in active]
        self._ended.extend(EndedCause(finding, self._judged) for finding in over)
        while self._ended and self._ended[0].until < now - ENDED_SECONDS:
            self._ended.popleft()
        self._roots, self._judged = dict(roots), now

    def _run_rules(self, view: QueryView, long_over: bool) -> None:
        """Holds what the rules find now, and drops findings that were last seen longer ago than they may linger."""
        seen = set()
        view.named = {slug for slug, _, _ in self._held}
        harmed = harm(view) is not None
        rests = view.run.rests
        asked = [rule for rule in self.rules if (rule.outlives or not long_over) and (rule.at_rest or not rests)]
        for rule in asked:
            try:
                found = list(rule.check(view))
            except Exception:  # whatever goes wrong in one rule, the others must still report
                self.errors[rule.slug] += 1
                continue
            for finding in found:
                if not finding.evidence or not all(math.isfinite(each.value) for each in finding.evidence):
                    continue  # no evidence, no finding
                key = (rule.slug, finding.component.kind, finding.component.name)
                earlier = self._held.get(key)
                since = earlier.finding.since if earlier else min(view.now, finding.began or view.now)
                severity = min(rule.severity, finding.at_most, key=SEVERITIES.index)
                whole = replace(
                    finding,
                    evidence=tuple(each for each in finding.evidence if not as_expected(each.value, each.expected))
                    or finding.evidence,
                    rule=rule.slug,
                    severity="info" if rule.needs_harm and not harmed else severity,
                    since=since,
                    confidence=_share(finding.confidence),
                    share=None if finding.share is None else _share(finding.share),
                )
                self._held[key] = Held(whole, with_largest_part(whole, view), view.now)
                seen.add(key)
        for key, held in list(self._held.items()):
            rule = self._by_slug[key[0]]
            over = long_over or rule not in asked or view.now - held.seen >= rule.linger
            if key not in seen and over:
                del self._held[key]

    def _cleared(self, view: QueryView, active: set[str]) -> Set[str]:
        """The rules between two active ones that are not active and rule themselves out."""
        between = {slug for each in active for slug in _explained(each, self.rules, {*self._by_slug})} - active
        return {rule.slug for rule in self.rules if rule.slug in between and self._ruled_out(rule, view) is not None}

    def _prevented(self, roots: Sequence[Finding]) -> list[Finding]:
        """The root causes in their order; those before an urgent one begin with the step that prevents the loss.

        The cause that explains most stays the cause, but what it takes to repair it may be more time than is left.
        """
        urgent = next((root for root in roots if self._by_slug[root.rule].urgent and root.remedies), None)
        if urgent is None:
            return list(roots)
        step = replace(urgent.remedies[0], why=urgent.summary, prevents=urgent.rule)
        before = roots.index(urgent)
        return [
            replace(root, remedies=(step, *root.remedies)) if place < before else root
            for place, root in enumerate(roots)
        ]

    def _ruled_out(self, rule: Rule, view: QueryView) -> str | None:
        """Why a rule is not the cause; None when it cannot tell, as batches of one that hangs after them, or raises."""
        if rule.ruled_out is None or (rule.slug in TIMED and any(slug == HANG for slug, _, _ in self._held)):
            return None
        try:
            return rule.ruled_out(view)
        except Exception:
            self.errors[rule.slug] += 1
            return None

    def _root(
        self, finding: Finding, findings: Sequence[Finding], view: QueryView, left_out: Mapping[str, str]
    ) -> Finding:
        """A finding as a root cause: as severe as the worst that it explains, and with what was ruled out instead."""
        symptoms = {finding.rule, *finding.explains}
        worst = max((each.severity for each in findings if each.rule in symptoms), key=SEVERITIES.index)
        active = {each.rule for each in findings}
        ruled_out = []
        for rule in self.rules:
            if rule.slug in left_out:
                ruled_out.append(RuledOut(rule.slug, left_out[rule.slug]))
                continue
            if rule.slug in active or not symptoms.intersection(rule.explains):
                continue
            because = self._ruled_out(rule, view)
            if because:
                ruled_out.append(RuledOut(rule.slug, because))
        alone = self._held[finding.rule, finding.component.kind, finding.component.name].alone
        told = replace(finding, summary=alone.summary, remedies=alone.remedies)
        return replace(told, severity=worst, ruled_out=tuple(ruled_out))


def _share(value: float) -> float:
    """Between 0 and 1, whatever numbers a rule was given."""
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0


def _rank(finding: Finding) -> tuple[int, bool, float, int, float, str]:
    """Most severe first, then what says that nothing moves, for a share of typical batches explains no batch that
    hangs; then what has the largest share in the trouble, explains most, is surest."""
    severity, share = SEVERITIES.index(finding.severity), finding.share or 0.0
    moves = finding.rule not in STUCK
    return -severity, moves, -round(share, 2), -len(finding.explains), -finding.confidence, finding.rule


def _explained(slug: str, rules: Sequence[Rule], active: set[str], cleared: Set[str] = frozenset()) -> tuple[str, ...]:
    """The active rules among those reached, in the order of the catalogue."""
    explained = reached(slug, rules, cleared)
    return tuple(rule.slug for rule in rules if rule.slug in explained and rule.slug in active)


def reached(slug: str, rules: Sequence[Rule], cleared: Set[str] = frozenset()) -> Set[str]:
    """All rules reached from one over `explains` edges, but for those in `cleared`.

    An inactive one that is ruled out cuts the chain: growing state makes batches late only by way of the collector.
    """
    edges = {rule.slug: rule.explains for rule in rules}
    found: set[str] = set()
    todo = list(edges.get(slug, ()))
    while todo:
        each = todo.pop()
        if each not in found and each != slug and each not in cleared:
            found.add(each)
            todo.extend(edges.get(each, ()))
    return found


def _health(findings: Sequence[Finding], status: Status) -> int:
    """100 x product over the findings of (1 - weight x confidence); 0 for a query that failed.

    The product keeps it between 0 and 100 and lets each further finding count less than the one before.
    """
    if status == "failed":
        return 0
    return round(100 * math.prod(1 - WEIGHTS[finding.severity] * finding.confidence for finding in findings))


def _status(view: QueryView, findings: Sequence[Finding]) -> Status:
    """The status of the query; `pressured` when it runs normally and a finding is at warning or above."""
    history, active = view.history, {finding.rule for finding in findings}
    if history.ended is not None:
        if history.ended.exception is not None or application_error(view) is not None:
            return "failed"
        return "lost" if history.ended.lost else "stopped"
    if any(each.rule in STUCK and each.severity == "critical" for each in findings):
        return "stuck"
    if "falling-behind" in active:
        return "falling_behind"
    if view.run.rests:
        return "idle"
    if (view.lag.seconds or 0.0) > max(MIN_CATCH_UP_SECONDS, 2 * view.interval) and view.lag.shrinks:
        return "catching_up"
    if any(finding.severity != "info" for finding in findings):
        return "pressured"
    return "starting" if len(view.baseline.settled) < MIN_BATCHES and not view.run.is_idle else "healthy"


def _figures(view: QueryView) -> dict[str, float]:
    """Known figures only: rows read a second, the newest batch, the interval, backlog and lag."""
    known = {
        "input_rows_per_second": sum(view.rates.read_by_source.values()) if view.rates.read_by_source else None,
        "batch_seconds": view.last.duration if view.last else None,
        "trigger_interval_seconds": view.trigger.interval,
        "backlog_offsets": view.lag.unread_offsets,
        "lag_seconds": view.lag_seconds,
    }
    return {name: float(value) for name, value in known.items() if value is not None}


def forecast(view: QueryView) -> Forecast:
    """When the backlog will be gone, and when results will be older than the objective at the present rates.

    While arrival is R times the processing rate, the lag grows by (R - 1) / R seconds a second.
    """
    if view.history.ended is not None or view.last is None:
        return Forecast()
    grown = falling.growth(view)
    load = falling.load(view) if grown is not None else None
    if grown is None or load is None or load.processed <= 0 or load.arrival <= load.processed:
        return Forecast(drain_seconds=view.capacity.drain_seconds)
    rising = 1 - load.processed / load.arrival
    return Forecast(seconds_to_slo_breach=max(0.0, view.freshness - grown.lag) / rising)
