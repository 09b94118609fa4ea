"""Objectives in words: `p99 latency < 5s`, `batch < trigger`, and whether a measured run met them.

The grammar is closed: a measure, a comparison, a value with its unit. What a run does not show is unknown, and unknown
fails an objective: an outage of the measurement must not look like a fast query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Literal, NamedTuple

from ledgerops.common import format
from ledgerops.errors import UserError
from ledgerops.load.test.measure import Measured

Unit = Literal["seconds", "ratio", "bytes", "rows"]
Status = Literal["held", "failed", "unknown"]

UNITS: dict[Unit, dict[str, float]] = {
    "seconds": {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0},
    "ratio": {"%": 0.01, "": 1.0},
    "bytes": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9},
    "rows": {"": 1.0, "k": 1e3, "M": 1e6},
}
EXAMPLES: dict[Unit, str] = {"seconds": "5s or 200ms", "ratio": "1%", "bytes": "200MB", "rows": "50000 or 50k"}
COMPARE: dict[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
# of a row, by the name that is also its attribute of Rows
LEGS = {
    "latency": "time of a row from when it was due to the end of its batch",
    "waiting": "the part of it before its batch began",
    "working": "the part of it within its batch",
}
TRIGGER = "trigger"  # the trigger interval, in place of a number of seconds
_FORM = re.compile(r"\s*([A-Za-z][A-Za-z0-9. ]*?)\s*(<=|>=|<|>)\s*(\S.*?)\s*")
_VALUE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z%]*)")


class Measure(NamedTuple):
    """A measure that an objective can use. `read` returns None if the run has no value for it."""

    unit: Unit
    summary: str
    read: Callable[[Measured], float | None]


def _latency(leg: str, share: float) -> Callable[[Measured], float | None]:
    return lambda measured: getattr(measured.rows, leg).at(share)


MEASURES: dict[str, Measure] = {
    "lag": Measure("seconds", "peak age of the oldest unfinished row", lambda m: m.lag),
    "lag slope": Measure(
        "ratio",
        "growth of that age in seconds per second: rows of backlog for each row that arrives",
        lambda m: m.slope,
    ),
    **{
        f"{name} {leg}": Measure("seconds", summary, _latency(leg, share))
        for leg, summary in LEGS.items()
        for name, share in PERCENTILES.items()
    },
    "batch": Measure("seconds", "median duration of a batch", lambda m: m.batch_seconds(0.5)),
    "p95 batch": Measure("seconds", "95th percentile of the batch duration", lambda m: m.batch_seconds(0.95)),
    "max batch": Measure("seconds", "the longest batch", lambda m: m.batch_seconds(1.0)),
    "state": Measure("bytes", "peak memory of all state operators", lambda m: m.state_bytes),
    "state rows": Measure("rows", "peak number of rows in all state operators", lambda m: m.state_rows),
    "state growth": Measure(
        "ratio",
        "rows of state added per row read in a typical batch: the increase from early to late in the run",
        lambda m: m.state_growth,
    ),
    "processed": Measure("ratio", "share of the due rows that were finished", lambda m: m.processed),
}


@dataclass(frozen=True, slots=True)
class Slo:
    """One objective. `limit` is None where it is the trigger interval."""

    text: str
    measure: str
    comparison: str
    limit: float | None

    def judge(self, measured: Measured) -> Outcome:
        """Held only where the value is known and on the right side of the limit."""
        value = MEASURES[self.measure].read(measured)
        limit = measured.trigger if self.limit is None else self.limit
        if value is None or limit is None or not math.isfinite(value):
            return Outcome(self, None, limit, "unknown", measured.unknown_because or "not measured in this run")
        return Outcome(self, value, limit, "held" if COMPARE[self.comparison](value, limit) else "failed")

    def show(self, value: float | None) -> str:
        """A value of the measure as people read it."""
        return shown(MEASURES[self.measure].unit, value)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One objective of one run; `reason` says why a value is unknown."""

    slo: Slo
    value: float | None
    limit: float | None
    status: Status
    reason: str = ""

    @property
    def held(self) -> bool:
        """Whether the objective was met. An unknown value does not meet it."""
        return self.status == "held"

    @property
    def text(self) -> str:
        """`p99 latency 14.2 s, wanted < 5 s`"""
        value = f"unknown ({self.reason})" if self.value is None else self.slo.show(self.value)
        return f"{self.slo.measure} {value}, wanted {self.slo.comparison} {self.wanted}"

    @property
    def wanted(self) -> str:
        """The limit as text, with its unit."""
        limit = self.slo.show(self.limit)
        return f"{limit}, the trigger interval" if self.slo.limit is None else limit


def shown(unit: Unit, value: float | None) -> str:
    """A value with its unit, an en dash for None."""
    if value is None:
        return format.UNKNOWN
    match unit:
        case "seconds":
            return f"{value:.3g} s" if 0 < value < 0.1 or 1 <= value < 100 else format.duration(value)
        case "ratio":
            return f"{100 * value:.3g} %"
        case "bytes":
            return format.size(value)
        case "rows":
            return f"{format.count(value)} rows"


def default_slos(freshness: float) -> list[Slo]:
    """What a rate must meet to be sustained; `freshness` is how old results may be, in seconds.

    Sources: growth of the lag by 1 % of the load as Theodolite and ShuffleBench have it; batches within their interval
    as Spark's guide asks; state that fills at an even pace may be on its way to a watermark's bound, one that fills
    ever faster is not (10 % of the rows is beyond what windows that open and close do to the median batch).
    """
    texts = ("lag slope <= 1%", f"p99 latency < {freshness:g}s", "batch < trigger", "state growth < 10%")
    return [parse(text) for text in texts]


def parse(text: str) -> Slo:
    """One objective. Raises UserError that says what there is."""
    found = _FORM.fullmatch(text)
    if not found:
        raise UserError(f"--slo {text!r}: write a measure, a comparison and a value, such as 'p99 latency < 5s'")
    measure, comparison, value = " ".join(found[1].split()), found[2], found[3]
    if measure not in MEASURES:
        raise UserError(f"--slo {text!r}: no measure {measure!r}; there are {listed()}")
    return Slo(" ".join(text.split()), measure, comparison, _limit(text, MEASURES[measure].unit, value))


def listed() -> str:
    """All measures, percentiles in short."""
    plain = [name for name in MEASURES if name.rpartition(" ")[2] not in LEGS]
    return f"{', '.join(plain)}, and {'|'.join(PERCENTILES)} of {', '.join(LEGS)}"


def _limit(text: str, unit: Unit, value: str) -> float | None:
    if value == TRIGGER and unit == "seconds":
        return None
    found = _VALUE.fullmatch(value)
    if not found or found[2] not in UNITS[unit]:
        also = " or trigger" if unit == "seconds" else ""
        raise UserError(f"--slo {text!r}: {value!r} is not a valid value; write {EXAMPLES[unit]}{also}")
    return float(found[1]) * UNITS[unit][found[2]]


def judge(slos: Sequence[Slo], measured: Measured) -> list[Outcome]:
    """Every objective of a run."""
    return [slo.judge(measured) for slo in slos]


def broken(outcomes: Iterable[Outcome]) -> list[str]:
    """What did not hold, in words."""
    return [each.text for each in outcomes if not each.held]
