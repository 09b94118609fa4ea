"""The search for the highest rate that a job sustains: an estimate, a bracket, halving in log space, and repetitions.

Single trials find the two neighbours, the highest rate that held and the lowest that failed; both are then repeated in
a random order, so that a machine that becomes slower or quicker falls on both, and the median of each objective's
values decides. Where the repetitions say otherwise the search goes on from there. The sustainable rate lies between
the two: an answer with its interval.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ledgerops.errors import UserError
from ledgerops.load.test.measure import Measured
from ledgerops.load.test.plans import MAX_RATE
from ledgerops.load.test.slo import Outcome, Slo, broken, judge

STEP_FACTOR = 2.0  # a bound that does not hold is moved by this factor until one is found
MAX_FALL_FACTOR = 32.0  # of the first rate: where so little fails, too, it is not the rate that fails it
MAX_TRIALS = 40  # a search that has not ended by then never will
RATE_DIGITS = 3  # of a rate: more are never measured
ROUNDING_RATIO = 1.05  # of the precision: what rounded rates may miss it by


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """`precision` is the width of the answer: 0.1 = the lowest rate that failed is 10 % above the one that held."""

    slos: Sequence[Slo]
    low: float | None = None  # rows a second that are not gone below
    high: float | None = None  # nor above
    precision: float = 0.1
    repeat: int = 3
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0.01 <= self.precision <= 1:
            raise UserError(f"--precision {self.precision:g}: give 0.01 to 1, the width of the answer")
        for option, bound in (("--min", self.low), ("--max", self.high)):
            if bound is not None and bound > MAX_RATE:
                raise UserError(f"{option} {bound:g}: too high a rate; give at most {MAX_RATE:,.0f} rows/s")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise UserError(f"--min {self.low:g} is not below --max {self.high:g}")


@dataclass
class Rate:
    """One rate and its trials."""

    rate: float
    trials: list[Measured] = field(default_factory=list)
    judged: list[list[Outcome]] = field(default_factory=list)

    @property
    def outcomes(self) -> list[Outcome]:
        """Each objective by the median of its values; unknown where the median trial does not know."""
        return [_middle([trial[number] for trial in self.judged]) for number in range(len(self.judged[0]))]

    @property
    def held(self) -> bool:
        """Whether most trials ran to their end and the median of each objective held."""
        return not broken(self.outcomes)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`low` held and `high` failed; None where there is no such rate between the bounds."""

    rates: Sequence[Rate]  # ascending
    low: Rate | None
    high: Rate | None
    estimate: float | None
    reason: str = ""  # why there is no answer, or none with two ends


Run = Callable[[float, str], Measured]  # a rate and why it is tried -> what was measured
Tell = Callable[[Rate], None]


def search(run: Run, settings: SearchSettings, estimate: float | None, tell: Tell = lambda rate: None) -> SearchResult:
    """Tries rates until the answer is known to the precision. `estimate` is where it begins."""
    return _Search(run, settings, estimate, tell).found()


class _Search:
    """One search: the rates that were tried, and what comes next."""

    def __init__(self, run: Run, settings: SearchSettings, estimate: float | None, tell: Tell) -> None:
        self.run, self.settings, self.estimate, self.tell = run, settings, estimate, tell
        self.rates: dict[float, Rate] = {}
        self.order = random.Random(settings.seed)  # an order, no secret
        self.count = 0

    def found(self) -> SearchResult:
        first = self._first_rate()
        if first is None:
            return self._result("no starting point: no batch ended in the first trial; give --min and --max")
        while True:
            low, high = self._ends()
            rate, why = self._next(low, high, first)
            if rate is None:
                if not self._confirm([each for each in (low, high) if each is not None]):
                    return self._result(self._reason(low, high))
            elif self.count >= MAX_TRIALS:
                return self._result(
                    f"no answer after {MAX_TRIALS} trials: the same rate holds and fails; give a longer --trial"
                )
            else:
                self._try(rate, why)

    def _first_rate(self) -> float | None:
        settings = self.settings
        if self.estimate is None and settings.low is not None and settings.high is not None:
            return rounded(math.sqrt(settings.low * settings.high))
        first = self.estimate or settings.low or settings.high
        return None if first is None else self._bounded(rounded(first))

    def _bounded(self, rate: float) -> float:
        return min(self.settings.high or MAX_RATE, max(self.settings.low or 0.0, rate))

    def _ends(self) -> tuple[Rate | None, Rate | None]:
        """The highest rate that held below the lowest that failed, and that one."""
        failed = [each for each in self.rates.values() if not each.held]
        high = min(failed, key=lambda each: each.rate, default=None)
        held = [each for each in self.rates.values() if each.held and (high is None or each.rate < high.rate)]
        return max(held, key=lambda each: each.rate, default=None), high

    def _next(self, low: Rate | None, high: Rate | None, first: float) -> tuple[float | None, str]:
        """The next rate to try; None when the two ends are near enough, or a bound is reached."""
        if low is None and high is None:
            return first, "the estimate"
        if low is None and high is not None:
            down = self._bounded(rounded(high.rate / self._step()))
            least = first / MAX_FALL_FACTOR if self.settings.low is None else self.settings.low
            return (down, "downwards") if least <= down < high.rate else (None, "")
        assert low is not None
        if high is None:
            up = self._bounded(rounded(low.rate * self._step()))
            return (up, "upwards") if up > low.rate else (None, "")
        middle = rounded(math.sqrt(low.rate * high.rate))
        near = high.rate / low.rate <= 1 + self.settings.precision * ROUNDING_RATIO
        return (None, "") if near or not low.rate < middle < high.rate else (middle, "between the two")

    def _step(self) -> float:
        """Small steps from an estimate that may be right, larger ones the longer it goes one way."""
        doublings = min(len(self.rates) - 1, 8)
        return min(STEP_FACTOR, (1 + self.settings.precision) ** (2**doublings)) if self.estimate else STEP_FACTOR

    def _confirm(self, ends: Sequence[Rate]) -> bool:
        """Repeats the two ends in a random order. Whether there was anything to repeat."""
        missing = [each.rate for each in ends for _ in range(self.settings.repeat - len(each.trials))]
        self.order.shuffle(missing)
        for rate in missing:
            self._try(rate, "again")
        return bool(missing)

    def _try(self, rate: float, why: str) -> None:
        self.count += 1
        measured = self.run(rate, why)
        each = self.rates.setdefault(rate, Rate(rate))
        each.trials.append(measured)
        each.judged.append(judge(self.settings.slos, measured))
        self.tell(each)

    def _reason(self, low: Rate | None, high: Rate | None) -> str:
        if low is None and high is not None:
            if not any(trial.inside for trial in high.trials):
                return f"no batch ended at {high.rate:,.0f} rows/s: the machine is busy or the job does not run"
            return f"even {high.rate:,.0f} rows/s failed: {broken(high.outcomes)[0]}"
        if high is None and low is not None:
            why = "no more can be tried" if low.rate >= MAX_RATE else "no more was tried: --max"
            return f"{low.rate:,.0f} rows/s held and {why}"
        return ""

    def _result(self, reason: str) -> SearchResult:
        low, high = self._ends()
        return SearchResult(sorted(self.rates.values(), key=lambda each: each.rate), low, high, self.estimate, reason)


def _middle(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of the median value, of an even number the worse of the two; unknown is worse than any value."""
    below = outcomes[0].slo.comparison.startswith("<")
    worst = math.inf if below else -math.inf
    ordered = sorted(outcomes, key=lambda each: worst if each.value is None else each.value, reverse=not below)
    return ordered[len(ordered) // 2]


def rounded(rate: float) -> float:
    """To RATE_DIGITS digits: what is shown is what was tried."""
    return float(f"{rate:.{RATE_DIGITS}g}")


def planned_trials(settings: SearchSettings, estimated: bool) -> int:
    """How many trials a search takes when nothing surprises: to find both ends, to halve, and to repeat."""
    bracket = 3 if estimated else 4
    return int(estimated) + bracket + 2 * (settings.repeat - 1)
