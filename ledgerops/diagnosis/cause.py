"""A cause of time as data, and the one check that serves them all.

A cause owns parts of the profile. Its saving is what a batch would take less without it: the seconds of its parts
beyond the usual, or all of them where no healthy past says what is usual.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ledgerops.common.format import duration
from ledgerops.diagnosis.arbiter import ends
from ledgerops.diagnosis.batch_parts import DESCRIBED, DRIVER, STAGES
from ledgerops.diagnosis.harm import examined, harm
from ledgerops.diagnosis.limits import MIN_SECONDS, NEARLY_ALL, NOISE_SHARE, WORTH_SHARE
from ledgerops.diagnosis.profile import Profile, profile
from ledgerops.diagnosis.rule import LATE, Rule
from ledgerops.diagnosis.runbook import with_evidence
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

# of a harmed query's batch, from which what has grown is worth naming beside a larger cause; else it is WORTH_SHARE.
# What would end the harm by itself is worth naming from NOISE_SHARE on
MIN_SHARE = 0.25
QUOTED_SHARE = 0.02  # of the batch, from which a part is quoted as evidence
FORMULAS: Mapping[str, str] = {  # of what every cause tells beside its parts
    "profile_seconds": "typical batch: median of durationMs.triggerExecution / 1000 over the batches that the finding "
    "names. The seconds of a part are the median of its shares of these batches, scaled so that all parts add up to it",
    "saving_seconds": "the seconds of the cause's parts, less the same of the usual batches that the finding names; "
    "parts that grow with the rows may take as many times longer as there are more, as far as they need that, but not "
    "for at most 100 rows while less than 1.2 times as many a second come as usual",
    "stretch_by_<part>": "where others have the cores: how many times as long the work takes. What the newest batches "
    "lost at equal rows, for other processes at most what queryPlanning, walCommit and commitOffsets lost together, "
    "where the last two count now for three times the first at most; without a healthy past these three over 0.4 s, "
    "for other processes at most as stretch_of_tasks. With a CPU limit 1 + cores_held_back / own_cores_used",
    "stretch_of_tasks": "the same for tasks that work; without a healthy past 1 over the share of the cores that "
    "other processes leave, which is at least 0.1; with a CPU limit at least 10, of tasks of other machines 1",
}


class Cost(NamedTuple):
    """What a cause takes of a typical batch, in seconds; `usual` is None without a healthy past. `allowed` is what its
    parts may take with so many rows: the usual, or without a past what they take of any query's batch."""

    seconds: float
    usual: float | None
    allowed: float
    duration: float

    @property
    def saving(self) -> float:
        """Seconds that a batch would take less without the cause."""
        return max(0.0, self.seconds - self.allowed)

    @property
    def share(self) -> float:
        """The saving as a share of the batch, 0 to 1."""
        return min(1.0, self.saving / self.duration) if self.duration > 0 else 0.0


class Told(NamedTuple):
    """What a finding says beside the parts: where it is, what to do, a safe step first, the other `words` of
    `happened`, and more evidence."""

    component: Component
    remedies: tuple[Remedy, ...]
    words: Mapping[str, str] = {}
    more: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of time. `happened` is said of it, with {seconds}, {batch}, {held} (who has the cores), and the words
    that `tell` gives, which is None where the cause cannot be true.

    `grown` are parts that count only beyond a known usual: without a past nothing tells whose they are. `born` are
    those that count only without one: what is there from the first batch does not grow by itself. `perhaps` never
    count, but without a past they may be of the cause, so that it is not ruled out beside them. `formulas` says how
    evidence beside the parts is computed, `min_share` is what it must take where MIN_SHARE does not fit, `normal` the
    seconds that any query spends on them. `early` tells what is worth knowing of it before it makes anything late.
    """

    slug: str
    runbook: str
    parts: tuple[str, ...]
    happened: str
    tell: Callable[[QueryView, Profile], Told | None]
    explains: tuple[str, ...] = LATE
    grown: tuple[str, ...] = ()
    born: tuple[str, ...] = ()
    perhaps: tuple[str, ...] = ()
    min_share: float | None = None
    normal: float = 0.0
    formulas: Mapping[str, str] = field(default_factory=dict)
    early: Callable[[QueryView], Iterator[Finding]] | None = None

    def rule(self) -> Rule:
        """The cause as a rule of the catalogue."""
        return Rule(
            self.slug,
            "warning",
            lambda view: check(self, view),
            with_evidence(self.runbook, self.evidence()) if self.runbook else "",  # -OO removes docstrings
            self.explains,
            lambda view: ruled_out(self, view),
            needs_harm=True,
        )

    def evidence(self) -> Mapping[str, str]:
        """How each number of its findings is computed, by name."""
        parts = {
            **dict.fromkeys(self.parts, ""),
            **dict.fromkeys(self.grown, "; counts only beyond the usual, so not without a healthy past"),
            **dict.fromkeys(self.born, "; counts only without a healthy past"),
        }
        of_parts = {f"{part}_seconds": f"{DESCRIBED[part]}{condition}" for part, condition in parts.items()}
        saving = FORMULAS["saving_seconds"]
        if self.normal:
            saving += f"; without a healthy past less {self.normal:g} s, which any query may spend on them"
        return {**of_parts, **FORMULAS, "saving_seconds": saving, **self.formulas}


def cost(cause: Cause, found: Profile) -> Cost:
    """What the cause takes of the profile's batch."""
    parts = [found.parts[name] for name in _names(cause, found) if name in found.parts]
    usual = sum(part.usual or 0.0 for part in parts) if found.has_past else None
    allowed = cause.normal if usual is None else sum(part.allowed for part in parts)
    return Cost(sum(part.now for part in parts), usual, allowed, found.duration)


def _names(cause: Cause, found: Profile) -> tuple[str, ...]:
    return (*cause.parts, *(cause.grown if found.has_past else cause.born))


def check(cause: Cause, view: QueryView) -> Iterator[Finding]:
    """The finding where the query is worth a look and the cause takes enough of a batch; else what it tells early."""
    found = profile(view) if examined(view) else None
    if found is None:
        yield from cause.early(view) if cause.early is not None else ()
        return
    taken, owed = cost(cause, found), harm(view)
    harmed, worth = owed is not None, MIN_SHARE if found.has_past else WORTH_SHARE
    least = cause.min_share or (NOISE_SHARE if ends(taken.share, owed) else worth)
    least = least if harmed else max(least, WORTH_SHARE)
    # of its limits: a cause does not come and go with noise while the query is harmed
    stays = NEARLY_ALL if harmed and cause.slug in view.named else 1.0
    least *= stays
    told = cause.tell(view, found) if taken.saving >= stays * MIN_SECONDS and taken.share >= least else None
    if told is None:
        return
    batches = min(len(found.splits), RECENT_BATCHES) / RECENT_BATCHES
    yield Finding(
        _happened(cause, told, found, taken),
        told.component,
        (*_evidence(cause, found, taken, least), *told.more),
        told.remedies,
        confidence=0.4 + 0.3 * taken.share + 0.1 * (found.has_past + found.knows_tasks) + 0.05 * batches,
        began=found.splits[0].batch.started,
        share=taken.share,
        saving_seconds=taken.saving,
        batches=found.batches,
        usual_batches=found.usual_batches,
    )


def ruled_out(cause: Cause, view: QueryView) -> str | None:
    """What the cause takes of a batch, where that is measured and too little; None otherwise."""
    found = profile(view)
    names = _names(cause, found) if found is not None else ()
    if found is None or not any(name in found.parts for name in names):
        return None
    if any(name in (*DRIVER, *STAGES) for name in names) and not found.knows_tasks:
        return None
    taken = cost(cause, found)
    grown = taken.seconds - (cause.normal if taken.usual is None else taken.usual)
    if not found.has_past:
        grown += found.now(*(name for name in (*cause.grown, *cause.perhaps) if name not in names))
    if grown >= max(MIN_SECONDS, min(cause.min_share or 1.0, MIN_SHARE) * taken.duration):
        return None  # a large number rules nothing out, whatever else the cause asks for
    share = f"({taken.seconds / taken.duration:.0%})"
    return f"{duration(taken.seconds)} of {duration(taken.duration)} {share}{_usually(taken)}"


def _happened(cause: Cause, told: Told, found: Profile, taken: Cost) -> str:
    held = found.contention.summary if found.contention is not None else ""
    part, whole = duration(taken.seconds), duration(taken.duration)
    if part == whole:  # by rounding
        part, whole = f"{taken.seconds:.3g} s", f"{taken.duration:.3g} s"
    values = {"seconds": part, "batch": whole, "held": held}
    return cause.happened.format(**values, **told.words) + _usually(taken)


def _usually(taken: Cost) -> str:
    return f"; usually {duration(taken.usual)}" if taken.usual is not None else ""


def _evidence(cause: Cause, found: Profile, taken: Cost, least: float) -> Iterator[Evidence]:
    """Each part that matters, and the batch that they are parts of."""
    at, limit = found.at, least * found.duration
    own = {name: found.parts[name] for name in _names(cause, found) if name in found.parts}
    if not found.has_past and max(part.now for part in own.values()) < limit:
        yield Evidence("saving_seconds", taken.saving, "seconds", f"< {limit:.2f}", at)
    for name, part in own.items():
        if part.now >= max(QUOTED_SHARE * found.duration, part.usual or 0.0):
            most = f"< {limit:.2f}" if part.now >= limit else "part of what the cause takes"
            usual = f"about {part.usual:.2f}" if part.usual is not None else most
            yield Evidence(f"{name}_seconds", part.now, "seconds", usual, at)
    usual = f"the usual {found.usual_duration:.1f}" if found.usual_duration is not None else "all parts together"
    yield Evidence("profile_seconds", found.duration, "seconds", usual, at)
    yield from found.stretches
    if found.contention is not None and found.contention.part in cause.parts:
        yield from found.contention.evidence
