"""One drill: which application runs how, what happens to it, and what a diagnosis must report.

The application does not know the truth, and the diagnosis sees what was recorded only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ledgerops.drills.harness.bundle import Bundle
    from ledgerops.drills.harness.injector import Injector
    from ledgerops.drills.harness.target_app import TargetApp

HarmKind = Literal["time", "failure", "given", "none"]
NO_TRIGGER_SECONDS = 1.5  # scale of faults of a query that runs back to back
DEADLINE_SECONDS = 30.0  # from the effect on; later is not found at all
# adjectives and nouns of the random names of queries
WORDS = (
    ("amber", "brisk", "calm", "dusky", "eager", "faint", "grand", "humble", "ivory", "jolly", "keen", "lucid"),
    ("badger", "cedar", "delta", "ember", "falcon", "grove", "harbor", "island", "juniper", "kestrel", "lagoon"),
)
# rules that any batch which takes too long may meet
LATE_SYMPTOMS = ("trigger-overrun", "falling-behind", "freshness-breach")

Effect = Callable[["Bundle"], float | None]  # the instant at which the fault takes effect; None if it never does
Break = Callable[["Injector"], AbstractContextManager[object]]  # entered at the onset, left for the repair


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What must be found of one fault. `rules`: any one of them names it. `component`: its kind, or `kind=regex` for
    its name or detail, where `{role}` is replaced by that query's random name; any one of several, or any component at
    all where there is none. `remedy`: a regex that one remedy must match."""

    rules: tuple[str, ...]
    query: str = "main"  # role of the query that the finding belongs to
    component: tuple[str, ...] = ()
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One drill. Times are seconds since the start of its first query.

    `control` is what the outside does from the beginning, `changes` what it does later, `actions` what is done to
    processes and servers. `harm` says how the harm is verified: by the times of batches in the checkpoint, by the
    failures that the application noted, or as given by construction, `harm_after` seconds after the onset.

    A scripted drill (see `scripted`) has a place in the catalogue of faults, its `id`. While its fault lasts, the
    outside does what `fault` says, and `breaks` is entered. Its load plans begin with its first query, and may
    change at the onset by themselves. `effect` says when the fault took effect; it must not use what the diagnosis
    reads.
    """

    name: str
    kind: str = ""
    seed: int = 0
    healthy: bool = False
    app: str = "warehouse"
    source: str = "rate"
    trigger: float | None = None  # seconds; None: back to back
    onset: Literal["birth", "later", ""] = ""
    onset_seconds: float = 0.0
    strength: str = ""
    query: str = ""  # its name; empty: unnamed
    blamed: str = ""  # query that the finding belongs to, where there are several
    place: tuple[str, ...] = ()  # of a drawn fault: the kind of component, its name, and its partition, key or function
    options: Mapping[str, str | float | int | bool] = field(default_factory=dict)
    control: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[tuple[float, Mapping[str, Any]], ...] = ()
    actions: tuple[tuple[float, str, float], ...] = ()  # when, what, how much
    expected: tuple[str, ...] = ()  # any of these rules names the fault
    may: tuple[str, ...] = ()  # further rules that are true of it
    harm: HarmKind = "time"
    harm_after: float = 0.0
    due: str = "warning"  # least severity of a finding that names a fault as `given`
    seconds: float = 60.0
    master: str = "local[2]"
    conf: Mapping[str, str] = field(default_factory=dict)
    partitions: int = 4  # of topics
    kafka_watched: bool = True  # whether the observer knows the brokers
    two_inputs: bool = False
    proxied: bool = False

    id: str = ""  # in the catalogue of faults: F03, X1, H7; empty: drawn
    text: str = ""  # what happens, in a line
    start: Callable[[TargetApp], object] | None = None  # starts the queries, in the driver; None: `app` does
    roles: tuple[str, ...] = ("main",)  # the queries that `start` starts, each of which gets a random name
    topics: Mapping[str, int] = field(default_factory=dict)  # partitions by name; none: no broker
    topic_conf: Mapping[str, str] = field(default_factory=dict)
    loads: tuple[tuple[str, str], ...] = ()  # topic and plan of what is sent from the beginning
    prepare: Callable[[Injector], object] | None = None  # before the driver starts
    fault: Mapping[str, Any] = field(default_factory=dict)
    breaks: Break | None = None
    fault_seconds: float = 0.0  # from the onset to the repair
    effect: Effect | None = None  # None for healthy ones only
    component: tuple[str, ...] = ()  # see Fault
    remedy: str = ""
    further: tuple[Fault, ...] = ()  # behind the first in their order, each a root cause of its own
    elsewhere: tuple[str, ...] = ()  # rules that are true of the other queries of the driver
    recovers: bool = True  # whether the repair ends the fault, so that the findings must vanish
    deadline_seconds: float = DEADLINE_SECONDS
    heavy: bool = False  # takes the whole machine: runs alone

    def save(self, folder: Path) -> None:
        """Writes a drawn case to `folder/case.json`."""
        (folder / "case.json").write_text(json.dumps(asdict(self), indent=1) + "\n", "utf-8")

    @staticmethod
    def load(folder: Path) -> Case:
        """A drawn case, perhaps of an older version. Raises OSError or ValueError when the folder has none."""
        found = json.loads((folder / "case.json").read_text("utf-8"))
        return Case(**{each.name: _tuples(found[each.name]) for each in fields(Case) if each.name in found})

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What must be found, in this order; nothing in a healthy run."""
        if self.healthy:
            return ()
        first = Fault(rules=self.expected, component=self.component, remedy=self.remedy)
        return (first, *self.further)

    @property
    def repair_seconds(self) -> float:
        """When the fault is repaired."""
        return self.onset_seconds + self.fault_seconds

    @property
    def group(self) -> str:
        """`control`, `combined` or `fault`: the part of the catalogue that it belongs to."""
        return "control" if self.healthy else "combined" if self.id.startswith("X") else "fault"

    @property
    def summary(self) -> str:
        """The case in a few words."""
        trigger = {None: "no trigger", -1.0: "available now"}.get(self.trigger) or f"{self.trigger:g} s"
        when = f", {self.onset}, {self.strength}" if not self.healthy else ""
        return self.text or f"{self.kind}: {self.app} from {self.source}, {trigger}{when}"


def _tuples(value: Any) -> Any:
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value


ONSET_SECONDS = 45.0  # the first ten seconds are warm-up, and 'usual' takes some batches more
FAULT_SECONDS = 45.0
scripted = partial(Case, onset_seconds=ONSET_SECONDS, fault_seconds=FAULT_SECONDS, seconds=120.0)
control = partial(scripted, healthy=True)


def stepped(seed: int, *phases: tuple[int, int | None], more: str = "") -> str:
    """A plan (YAML) of so many rows a second for so many seconds, one after the other; None: for ever. `more`: further
    parts of a plan in flow style."""
    shapes = (f"rate: {rate}" + (f", duration: {seconds}s" if seconds else "") for rate, seconds in phases)
    constant = ", ".join(f"{{shape: constant, {shape}}}" for shape in shapes)
    return f"{{seed: {seed}, start: now, phases: [{constant}]{more and ', '}{more}}}"


def steady(seed: int, rate: int, more: str = "") -> str:
    """A plan of so many rows a second."""
    return stepped(seed, (rate, None), more=more)


TWO_PARTITIONS = "partitions: {count: 2}"
ONE_FUTURE_ROW = "changes: [{from: 45s, to: 90s, disorder: {future: {count: 1, ahead: 1h}}}]"
