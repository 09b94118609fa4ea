"""Plans of load tests: the closed form of when rows are due, and plans made for a rate."""

from __future__ import annotations

import numpy as np

from ledgerops.errors import UserError
from ledgerops.ledger.plan.phases import Floats
from ledgerops.ledger.plan.plan import Plan, parse_plan

KEYS = "keys: {customers: 4000, accounts: 4500, distribution: zipf, exponent: 0.8}"
WARM_UP_SHARE = 0.3  # of the rate in the calm beginning: code is compiled, workers are there, and nothing is left over
LEAST_CALM, CALM_BATCHES = 14.0, 4  # seconds, or so many batches: the first ones take several times what they should
SETTLING_BATCHES = 3  # batches at full load until the first of them no longer counts
SLOWEST, STEPS, LEAST_STEP = 500.0, 10, 3.0  # rows a second, doubled to 256,000, each for so many seconds
MAX_RATE = 10_000_000.0  # rows a second; beyond it a plan is a slip of the pen


class Due:
    """When the rows of a plan are due whose clock stood at zero at `origin` (seconds since the epoch)."""

    def __init__(self, plan: Plan, origin: float) -> None:
        self.schedule, self.origin = plan.schedule, origin

    def count(self, at: float) -> float:
        """The integral of the rate until then."""
        return float(self.schedule.cumulative(np.array([at - self.origin]))[0])

    def instants(self, rows: Floats) -> Floats:
        """When each row, counted from 0, is due."""
        return self.origin + self.schedule.due_time(np.asarray(rows, np.int64))


def at_rate(rate: float, trigger: float) -> Plan:
    """A plan that stays at `rate` rows a second, after a calm beginning. Raises UserError for an absurd rate."""
    if not 0 < rate <= MAX_RATE:
        raise UserError(f"invalid rate of {rate:g} rows/s; give a rate above 0 and at most {MAX_RATE:,.0f}")
    return _plan(f"{rate:g} rows/s", (WARM_UP_SHARE * rate, calm(trigger)), (rate, None))


def calm(trigger: float) -> float:
    """Seconds of the calm beginning."""
    return max(LEAST_CALM, CALM_BATCHES * trigger)


def warm_up(trigger: float) -> float:
    """Seconds of a plan at a rate that are not measured: the calm, and what full load needs to settle."""
    return calm(trigger) + SETTLING_BATCHES * trigger


def probing(trigger: float) -> Plan:
    """A load that doubles again and again: batches of all sizes, by which a capacity is estimated."""
    length = max(LEAST_STEP, 1.5 * trigger)
    rates = [SLOWEST * 2**step for step in range(STEPS)]
    return _plan("a load that doubles", *((rate, length) for rate in rates))


def probing_seconds(trigger: float) -> float:
    """How long it rises."""
    return STEPS * max(LEAST_STEP, 1.5 * trigger)


def _plan(title: str, *phases: tuple[float, float | None]) -> Plan:
    """Constant rates one after the other; the last one goes on."""
    lines = [
        f"  - {{shape: constant, rate: {rate!r}" + (f", duration: {seconds!r}s}}" if seconds else "}")
        for rate, seconds in phases
    ]
    return parse_plan("\n".join(["seed: 7", "start: now", "phases:", *lines, KEYS, ""]), title)
