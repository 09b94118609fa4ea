"""Plans of load tests: the closed form of when rows are due, and plans made for a rate."""

import numpy as np

from ledgerops.errors import UserError
from ledgerops.ledger.plan.phases import Floats
from ledgerops.ledger.plan.plan import LoadPlan, parse_plan

KEYS = "keys: {customers: 4000, accounts: 4500, distribution: zipf, exponent: 0.8}"
# A plan at a rate begins calmly, with a share of it: code is compiled, workers start, and no backlog is left over.
CALM_SHARE = 0.3
MIN_CALM_SECONDS = 14.0
MIN_CALM_BATCHES = 4  # the first ones take several times as long as the others
SETTLING_BATCHES = 3  # at full load, until the first of them no longer counts
# A plan that doubles the rate
FIRST_RATE = 500.0  # rows a second
DOUBLINGS = 10  # to 256,000 rows a second
MIN_STEP_SECONDS = 3.0
MAX_RATE = 10_000_000.0  # rows a second; a higher one is a typing error


class Due:
    """When the rows of a plan are due; its clock stood at zero at `origin` (seconds since the epoch)."""

    def __init__(self, plan: LoadPlan, origin: float) -> None:
        self.schedule, self.origin = plan.schedule, origin

    def count(self, at: float) -> float:
        """How many rows are due by then: the integral of the rate."""
        return float(self.schedule.cumulative(np.array([at - self.origin]))[0])

    def instants(self, rows: Floats) -> Floats:
        """When each row, counted from 0, is due; infinity for one that never comes."""
        return self.origin + self.schedule.due_time(np.asarray(rows, np.int64))


def at_rate(rate: float, trigger: float) -> LoadPlan:
    """A plan that stays at `rate` rows a second, after a calm beginning. Raises UserError for an absurd rate."""
    if not 0 < rate <= MAX_RATE:
        raise UserError(f"invalid rate of {rate:g} rows/s; give a rate above 0 and at most {MAX_RATE:,.0f}")
    return _plan(f"{rate:g} rows/s", (CALM_SHARE * rate, calm_seconds(trigger)), (rate, None))


def calm_seconds(trigger: float) -> float:
    """Seconds of the calm beginning."""
    return max(MIN_CALM_SECONDS, MIN_CALM_BATCHES * trigger)


def warm_up_seconds(trigger: float) -> float:
    """Seconds of a plan at a rate that are not measured: the calm beginning, and the time to settle at full load."""
    return calm_seconds(trigger) + SETTLING_BATCHES * trigger


def doubling(trigger: float) -> LoadPlan:
    """A load that doubles again and again: batches of all sizes, from which a capacity is estimated."""
    rates = [FIRST_RATE * 2**step for step in range(DOUBLINGS)]
    return _plan("a load that doubles", *((rate, _step_seconds(trigger)) for rate in rates))


def doubling_seconds(trigger: float) -> float:
    """How long the load of `doubling` lasts."""
    return DOUBLINGS * _step_seconds(trigger)


def _step_seconds(trigger: float) -> float:
    return max(MIN_STEP_SECONDS, 1.5 * trigger)


def _plan(title: str, *phases: tuple[float, float | None]) -> LoadPlan:
    """Constant rates one after the other; the last one goes on."""
    lines = [
        f"  - {{shape: constant, rate: {rate!r}" + (f", duration: {seconds!r}s}}" if seconds else "}")
        for rate, seconds in phases
    ]
    return parse_plan("\n".join(["seed: 7", "start: now", "phases:", *lines, KEYS, ""]), title)
