"""What a diagnosis consists of: findings with their evidence, and the verdict that the engine makes of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")  # by what to do: know it, act today, act now

# lost: the run vanished without a terminated event
Status = Literal[
    "healthy", "idle", "starting", "catching_up", "pressured", "falling_behind", "stuck", "failed", "stopped", "lost",
]  # fmt: skip

WAITING = "waiting for the first batch"  # what is said of a query that is starting and of which nothing else is known


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number that a finding rests on. It can be recomputed from the recording at `at`."""

    name: str  # a metric's name where there is one
    value: float
    unit: str  # "seconds", "bytes", "rows", "rows/s", "offsets", "ratio", "count"
    expected: str  # "<= 3"
    at: float


# names of settings that are not Spark's own
TRIGGER_SECONDS = "trigger_interval_seconds"
DELAY_SECONDS = "watermark_delay_seconds"
CORES = "cores"  # of the application: its slots for tasks
REPARTITION = "repartition"  # of the rows behind the source, into so many tasks

SHUFFLE = "spark.sql.shuffle.partitions"


class Setting(NamedTuple):
    """What a step sets: an option or a configuration of Spark by its own name, or one of the names above. `value` is
    None where nothing in the data tells it, as for the delay of a watermark that a query does not have."""

    name: str
    value: float | str | None


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to do, valid for this query.

    `safe` = can be undone, and loses and repeats no row; `settings` are what it sets at the next start, where it is
    that kind of step. `general` is a first step without names and numbers of the query, one of `metrics.first_steps`;
    `prevents` the rule whose loss it prevents, where that is not the cause's own.
    """

    action: str
    why: str
    command: str | None = None
    safe: bool = True
    settings: tuple[Setting, ...] = ()
    general: str = ""
    prevents: str | None = None


@dataclass(frozen=True, slots=True)
class Component:
    """The part that is to blame: a source partition, a stage, the sink, the state operator, the whole query."""

    kind: str  # "query", "source", "partition", "stage", "key", "sink", "operator", "executor", "job"
    name: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class RuledOut:
    """A possible cause that is not the cause."""

    rule: str
    because: str  # with the number that rules it out


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with one query. The engine fills `rule`, `severity`, `since` and what follows."""

    summary: str  # one sentence with the numbers
    component: Component
    evidence: tuple[Evidence, ...]
    remedies: tuple[Remedy, ...] = ()
    confidence: float = 0.5  # 0 to 1: how far beyond the limit, how long, how many signals agree
    began: float | None = None  # where the history shows it; else when the engine first saw it
    at_most: Severity = "critical"  # its rule's severity is lowered to this; info: it does no harm yet
    share: float | None = None  # of the trouble, 0 to 1, such as of a batch's time; ranks causes, and 0 explains none
    saving_seconds: float | None = None  # that a typical batch would take less without this; None where unknown
    batches: tuple[int, ...] = ()  # ids of the batches that its numbers are medians of, oldest first
    usual_batches: tuple[int, ...] = ()  # and of those that they are compared with
    rule: str = ""
    severity: Severity = "warning"
    since: float = 0.0
    explains: tuple[str, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()

    @property
    def identity(self) -> tuple[str, str, str]:
        """By which it is the same finding in another verdict: the rule, and what is wrong; not in which words."""
        return self.rule, self.component.kind, self.component.name


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds from now; None when unknown, or when it will not happen at the present rates."""

    drain_seconds: float | None = None
    seconds_to_slo_breach: float | None = None


class Part(NamedTuple):
    """A share of a batch's wall time; `ledgerops.diagnosis.batch_parts` says what each part is."""

    part: str
    seconds: float
    share: float  # of the batch's duration, 0 to 1


class EndedCause(NamedTuple):
    """A root cause that is over, and when it was last one, in epoch seconds."""

    finding: Finding
    until: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The diagnosis of one query at one moment."""

    query: str
    at: float
    status: Status
    health: int  # 0 to 100
    root_causes: tuple[Finding, ...] = ()
    findings: tuple[Finding, ...] = ()
    forecast: Forecast = field(default_factory=Forecast)
    figures: Mapping[str, float] = field(default_factory=dict)  # what a reader wants to see of a healthy query, too
    ended: tuple[EndedCause, ...] = ()  # root causes at warning or above that ended in the last hour, oldest first
    attribution: tuple[Part, ...] = ()  # where the time of a typical batch goes; empty before there is one
    muted: tuple[Finding, ...] = ()  # of rules that a person has muted; they are in none of the others
