"""Before and after a change: is a query better or worse, is there no effect, or are there too few data?

`docs/decisions/012-no-effect-must-be-shown.md` says what each verdict needs and why. The error is divided among all
measures of all queries (Bonferroni); equivalence must be shown (Schuirmann 1987); what does not matter is 10 % of the
value before, for the same program in two JVMs differs by several percent (Georges, Buytaert, Eeckhout 2007,
"Statistically rigorous Java performance evaluation"). Two runs show only these two runs.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal, NamedTuple

import numpy as np

from ledgerops.analysis.batch_samples import BatchSample
from ledgerops.analysis.effect_size import Shift, independent, shift, slope
from ledgerops.common import format

Direction = Literal["better", "worse", "no effect", "cannot tell"]
MAX_ERROR = 0.05  # probability that any of the verdicts is wrong
SMALL_SHARE = 0.1  # of the value before: a smaller difference does not matter
# independent values of each side: with fewer, the normal approximation of Mann and Whitney's test is not close
MIN_INDEPENDENT = 8.0
ROW_QUANTILES = (0.05, 0.95)  # of the rows: the range that both sides share, without outliers
EQUAL_ROWS_SHARE = 0.05  # by which rows may differ and count as equal: the range of a steady load has no width
MAX_LOAD_DIFFERENCE_SHARE = 0.15  # a difference of the rows a second beyond this explains one of the lag


class Quantity(NamedTuple):
    """A measure, of which a smaller value is better. `least` is the difference, in its unit, that never matters."""

    name: str
    unit: str
    least: float
    read: Callable[[BatchSample], float | None]
    by_rows: bool = False  # grows with the rows of a batch


# the least difference is Spark's own jitter
DURATION = Quantity("batch duration", "seconds", 0.02, lambda sample: sample.seconds, by_rows=True)
OTHERS = (
    Quantity("lag", "seconds", 1.0, lambda sample: sample.lag),  # its resolution is the trigger interval
    Quantity("latency", "seconds", 1.0, lambda sample: sample.latency),
    Quantity("state memory", "bytes", 1e6, lambda sample: sample.state_bytes),
    Quantity("state commit", "seconds", 0.02, lambda sample: sample.commit_seconds),
)


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure on both sides. Of a phase and of the batch duration the values are those at equal rows."""

    name: str
    unit: str
    verdict: Direction
    because: str  # why there is no clear answer; empty otherwise
    before: float | None = None
    after: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    probability: float | None = None  # with which the interval holds


@dataclass(frozen=True, slots=True)
class Side:
    """What one side had: batches with rows, their median rows, rows read a second."""

    batches: int
    rows: float | None
    rows_per_second: float | None
    processed_per_second: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One query. The verdict rests on the `measures`; `phases` show where a difference of the duration comes from."""

    query: str
    verdict: Direction
    because: str
    before: Side
    after: Side
    measures: tuple[Measure, ...] = ()
    phases: tuple[Measure, ...] = ()


def compare(
    before: Mapping[str, Sequence[BatchSample]], after: Mapping[str, Sequence[BatchSample]], query: str | None = None
) -> list[Comparison]:
    """The queries that both sides have, by name; those of one side only are 'cannot tell'."""
    names = sorted(name for name in {*before, *after} if query in (None, name))
    pairs = {name: (before.get(name, ()), after.get(name, ())) for name in names}
    tests = sum(1 + sum(_has(quantity, *pair) for quantity in OTHERS) for pair in pairs.values())
    level = 1 - MAX_ERROR / max(1, tests)
    return [_compared(name, *pair, level) for name, pair in pairs.items()]


def _has(quantity: Quantity, *sides: Sequence[BatchSample]) -> bool:
    return all(any(quantity.read(sample) is not None for sample in side) for side in sides)


def _compared(query: str, before: Sequence[BatchSample], after: Sequence[BatchSample], level: float) -> Comparison:
    sides = _side(before), _side(after)
    missing = [name for name, side in (("before", before), ("after", after)) if not side]
    if missing:
        return Comparison(query, "cannot tell", f"no batches {missing[0]} the change", *sides)
    duration = _measured(DURATION, before, after, level)
    others = [_measured(quantity, before, after, level) for quantity in OTHERS if _has(quantity, before, after)]
    measures = (duration, *(_excused(each, *sides) for each in others))
    phases: tuple[Measure, ...] = ()
    if duration.verdict in ("better", "worse"):  # the gate: phases explain a difference that is there
        names = sorted({name for sample in (*before, *after) for name in sample.phases})
        inner = 1 - MAX_ERROR / len(names) if names else level
        phases = tuple(_measured(_phase(name), before, after, inner) for name in names)
    verdict, because = _together(measures)
    return Comparison(query, verdict, because, *sides, measures, phases)


def _phase(name: str) -> Quantity:
    return Quantity(name, "seconds", DURATION.least, lambda sample: sample.phases.get(name, 0.0), by_rows=True)


def _side(samples: Sequence[BatchSample]) -> Side:
    worked = [sample for sample in samples if sample.rows > 0]
    if not worked:
        return Side(0, None, None, None)
    rates = [sample.read for sample in worked if sample.read is not None]
    processed = sum(sample.rows for sample in worked) / max(1e-9, sum(sample.seconds for sample in worked))
    return Side(len(worked), median(sample.rows for sample in worked), median(rates) if rates else None, processed)


def _measured(quantity: Quantity, before: Sequence[BatchSample], after: Sequence[BatchSample], level: float) -> Measure:
    if quantity.by_rows:
        values, because = _at_equal_rows(quantity, before, after)
    else:
        values, because = (_known(quantity, before), _known(quantity, after)), ""
    blank = Measure(quantity.name, quantity.unit, "cannot tell", because)
    if because:
        return blank
    worth = [independent(side) for side in values]
    if min(map(len, values)) < MIN_INDEPENDENT:
        alike = " of the same size" if quantity.by_rows else ""
        return replace(blank, because=f"too few batches{alike}: {len(values[0])} before, {len(values[1])} after")
    if min(worth) < MIN_INDEPENDENT:
        similar = "too few independent batches: consecutive batches are so similar that the"
        counts = f"{len(values[0])} before and {len(values[1])} after count as only {worth[0]:.0f} and {worth[1]:.0f}"
        return replace(blank, because=f"{similar} {counts}")
    return _judged(quantity, shift(*values, level), level)


def _known(quantity: Quantity, samples: Sequence[BatchSample]) -> list[float]:
    return [value for sample in samples if (value := quantity.read(sample)) is not None]


def _at_equal_rows(
    quantity: Quantity, before: Sequence[BatchSample], after: Sequence[BatchSample]
) -> tuple[tuple[list[float], list[float]], str]:
    """The values of batches in the range of rows that both sides have, as they would be with its median of rows."""
    sides = [[sample for sample in side if sample.rows > 0] for side in (before, after)]
    if not all(sides):
        return ([], []), "no batch with rows " + ("before" if not sides[0] else "after")
    ranges = [np.quantile([sample.rows for sample in side], ROW_QUANTILES) for side in sides]
    low = max(first for first, _ in ranges) * (1 - EQUAL_ROWS_SHARE)
    high = min(last for _, last in ranges) * (1 + EQUAL_ROWS_SHARE)
    shared = [[sample for sample in side if low <= sample.rows <= high] for side in sides]
    if min(map(len, sides)) >= MIN_INDEPENDENT > min(map(len, shared)):
        rows = [median(sample.rows for sample in side) for side in sides]
        return ([], []), f"batches have other sizes: {format.count(rows[0])} rows before, {format.count(rows[1])} after"
    if not all(shared):
        shared = sides  # too few to tell anyway
    middle = median(sample.rows for side in shared for sample in side)
    adjusted = []
    for side in shared:
        values = [quantity.read(sample) or 0.0 for sample in side]
        each = max(0.0, slope([sample.rows for sample in side], values))
        adjusted.append([value - each * (sample.rows - middle) for sample, value in zip(side, values, strict=True)])
    return (adjusted[0], adjusted[1]), ""


def _judged(quantity: Quantity, found: Shift, level: float) -> Measure:
    enough = max(quantity.least, SMALL_SHARE * abs(found.before))
    verdict: Direction = "cannot tell"
    because = ""
    if found.low > 0 and found.difference >= enough:
        verdict = "worse"
    elif found.high < 0 and -found.difference >= enough:
        verdict = "better"
    elif -enough < found.low and found.high < enough:
        verdict = "no effect"
    elif math.isinf(found.low) or math.isinf(found.high):
        because = "too few batches"
    else:
        because = "too much variation for so few batches"
    return Measure(
        quantity.name, quantity.unit, verdict, because, found.before, found.after, found.difference,
        None if math.isinf(found.low) else found.low, None if math.isinf(found.high) else found.high, level,
    )  # fmt: skip


def _excused(measure: Measure, before: Side, after: Side) -> Measure:
    """A lag that grew or shrank with the load is no effect of the change."""
    first, second = before.rows_per_second, after.rows_per_second
    if not first or second is None or abs(second - first) <= MAX_LOAD_DIFFERENCE_SHARE * first:
        return measure
    if (measure.verdict == "worse" and second > first) or (measure.verdict == "better" and second < first):
        reason = f"the load differs: {format.count(first)} rows/s before, {format.count(second)} after"
        return replace(measure, verdict="cannot tell", because=reason)
    return measure


def _together(measures: Sequence[Measure]) -> tuple[Direction, str]:
    """The batch duration decides, unless only another measure is better or worse."""
    changed = {each.verdict for each in measures} & {"better", "worse"}
    if len(changed) == 2:
        verdicts = ", ".join(f"{each.name} {each.verdict}" for each in measures if each.verdict in changed)
        return "cannot tell", f"measures disagree: {verdicts}"
    if changed:
        [verdict] = changed
        return verdict, ", ".join(each.name for each in measures if each.verdict == verdict)
    if measures[0].verdict == "no effect":
        return "no effect", ""
    return "cannot tell", measures[0].because
