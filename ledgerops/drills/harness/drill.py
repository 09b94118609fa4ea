"""What a drill is: real queries, a real fault, and what a diagnosis must report.

The driver under test does not know the truth, and the diagnosis sees the recording only. Times are seconds since the
drill's origin: the moment at which the first query starts, which is also time zero of its load plans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ledgerops.drills.harness.bundle import Bundle
    from ledgerops.drills.harness.injector import Injector
    from ledgerops.drills.harness.target_app import TargetApp

DrillKind = Literal["fault", "combined", "control"]
ONSET_SECONDS = 45.0  # of the fault: the first ten seconds are warm-up, and 'usual' takes some batches more
FAULT_SECONDS = 45.0
RECOVERY_SECONDS = 30.0
# adjectives and nouns of the random names of queries
WORDS = (
    ("amber", "brisk", "calm", "dusky", "eager", "faint", "grand", "humble", "ivory", "jolly", "keen", "lucid"),
    ("badger", "cedar", "delta", "ember", "falcon", "grove", "harbor", "island", "juniper", "kestrel", "lagoon"),
)
# rules that any batch which takes too long may meet
LATE_SYMPTOMS = ("trigger-overrun", "falling-behind", "freshness-breach")
DEADLINE_SECONDS = 30.0  # from the effect on; later is not found at all

Effect = Callable[["Bundle"], float | None]  # the instant at which the fault takes effect; None if it never does


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault. `rules`: any one of them names it. `component`: its kind, or `kind=regex` for its name or detail,
    where `{role}` is replaced by that query's random name. `remedy`: a regex that one remedy must match."""

    rules: tuple[str, ...]
    query: str = "main"  # role of the query that the finding belongs to
    component: tuple[str, ...] = ()  # any one; empty: any component
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What a diagnosis must report while the fault lasts: every fault as a root cause, in this order. `may` are further
    rules at warning or above that are true of the same queries (symptoms, consequences), `elsewhere` those that are
    true of the other queries of the driver."""

    faults: tuple[Fault, ...] = ()  # none for a control
    may: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def cause(
    *rules: str,
    component: tuple[str, ...] = (),
    remedy: str,
    may: tuple[str, ...] = (),
    elsewhere: tuple[str, ...] = (),
) -> Truth:
    """The truth of a drill with a single fault, in its main query."""
    return Truth(faults=(Fault(rules=rules, component=component, remedy=remedy),), may=may, elsewhere=elsewhere)


@dataclass(frozen=True, kw_only=True)
class Drill:
    """One drill. `start` runs in the driver and starts the queries.

    The fault is `control`, settings of the control file while it lasts, or `inject` and `repair`, which act on the
    driver from outside. A drill whose load plan changes at ONSET_SECONDS by itself needs none of them. `effect` must
    not use what the diagnosis reads.
    """

    name: str
    id: str  # in the catalogue of faults: F03, X1, H7
    kind: DrillKind = "fault"
    summary: str
    start: Callable[[TargetApp], object]
    # before the driver starts, where a server or a topic must be there first; gives settings for the driver
    prepare: Callable[[Injector], dict[str, Any]] | None = None
    control: Mapping[str, Any] = field(default_factory=dict)
    inject: Callable[[Injector], object] | None = None
    repair: Callable[[Injector], object] | None = None
    effect: Effect | None = None  # None for controls only
    truth: Truth = Truth()
    roles: tuple[str, ...] = ("main",)  # the queries, each of which gets a random name
    onset_seconds: float = ONSET_SECONDS
    fault_seconds: float = FAULT_SECONDS
    recovery_seconds: float = RECOVERY_SECONDS
    deadline_seconds: float = DEADLINE_SECONDS
    heavy: bool = False  # takes the whole machine: runs alone
    limit: str = ""  # why it is not found as it should be, where that is known: published beside its score
    recovers: bool = True  # whether the repair ends it, so that the findings must vanish
    # settings of the driver's Spark session, such as spark.driver.memory
    conf: tuple[tuple[str, str], ...] = ()
    master: str | None = None  # in place of local[2]

    @property
    def seconds(self) -> float:
        """The whole, without the start of Spark."""
        return self.onset_seconds + self.fault_seconds + self.recovery_seconds
