"""What a drill is: real queries, a real fault, and what a diagnosis must say of it.

The driver under test knows nothing of the truth, and the diagnosis sees the recording only. Times are seconds since the
drill's origin, when the first query starts and the clock of its load plans stands at zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ledgerops.drills.harness.bundle import Bundle
    from ledgerops.drills.harness.injector import Surgeon
    from ledgerops.drills.harness.target_app import Patient

Kind = Literal["fault", "combined", "control"]
ONSET = 45.0  # of the fault: the first ten seconds are warm-up, and 'usual' takes some batches more
FAULT = 45.0
RECOVERY = 30.0
LATE = ("trigger-overrun", "falling-behind", "freshness-breach")  # rules that any batch which takes too long may meet
DEADLINE = 30.0  # from the effect on; later is not found at all

Effect = Callable[["Bundle"], float | None]  # the instant at which the fault takes effect; None if it never does


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault at work. `rules`: any one of them names it. `component`: its kind, or `kind=regex` of its name or its
    detail, where `{role}` stands for that query's random name. `remedy`: a regex that one remedy must match."""

    rules: tuple[str, ...]
    query: str = "main"  # role of the query that is to blame, or that suffers where it is told of
    component: tuple[str, ...] = ()  # any one; empty: any component
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What a diagnosis must say while the fault lasts: every fault is named as a root cause, the first in its order
    first. `may` are further rules at warning or above that are true of the same queries (symptoms, consequences),
    `elsewhere` those that are true of the other queries of the driver."""

    faults: tuple[Fault, ...] = ()  # none for a control
    may: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Drill:
    """One drill. `start` runs in the driver and starts the queries; `inject` and `repair` act from outside on it.

    What needs neither (a load plan that changes by itself at ONSET) leaves them out. `effect` judges by something other
    than what the diagnosis reads.
    """

    name: str
    id: str  # in the catalogue of faults: F03, X1, H7
    kind: Kind
    summary: str
    start: Callable[[Patient], None]
    # before the driver starts, where a server or a topic must be there first; gives settings for the driver
    prepare: Callable[[Surgeon], dict[str, Any]] | None = None
    inject: Callable[[Surgeon], None] | None = None
    repair: Callable[[Surgeon], None] | None = None
    effect: Effect | None = None  # None for controls only
    truth: Truth = Truth()
    roles: tuple[str, ...] = ("main",)  # the queries, each of which gets a random name
    onset: float = ONSET
    fault_seconds: float = FAULT
    recovery_seconds: float = RECOVERY
    deadline: float = DEADLINE
    heavy: bool = False  # takes the whole machine: runs alone
    limit: str = ""  # why it is not found as it should be, where that is known: published beside its score
    recovers: bool = True  # whether the repair ends it, so that the findings must vanish
    # settings of the driver's Spark session, such as spark.driver.memory
    conf: tuple[tuple[str, str], ...] = ()
    master: str | None = None  # in place of local[2]

    @property
    def seconds(self) -> float:
        """The whole, without the start of Spark."""
        return self.onset + self.fault_seconds + self.recovery_seconds
