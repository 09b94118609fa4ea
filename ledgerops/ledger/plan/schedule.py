"""Phases one after the other: the whole plan's records due by an instant, and the instant of each record."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ledgerops.ledger.plan.phases import Floats, Phase

# C(t) and its inverse agree to some ulps: a record is due when the integral is this near to its number
_ROUNDING = 1e-6
_LONG_SECONDS = 1e9  # in which an endless phase that is not silent has a record


class Schedule:
    """Record n (from 0) is due when the integral of the rate reaches n + 1. Times are seconds from the plan's start.

    `total`: how many records there ever are; None: they never end.
    """

    def __init__(self, phases: tuple[Phase, ...], repeat: bool) -> None:
        self.phases = phases
        self._starts = np.zeros(len(phases) + 1)
        self._totals = np.zeros(len(phases) + 1)
        for i, phase in enumerate(phases):
            self._starts[i + 1] = self._starts[i] + phase.duration
            endless = math.isinf(phase.duration)
            self._totals[i + 1] = math.inf if endless else self._totals[i] + phase.amount(np.array([phase.duration]))[0]
        self._cycle = (float(self._starts[-1]), float(self._totals[-1])) if repeat else None
        silent = [not phase.amount(np.array([min(phase.duration, _LONG_SECONDS)]))[0] for phase in phases]
        # where silence comes before a phase, the phase that spoke last: of a record at the border of the two
        self._spoke, last = np.arange(len(phases)), -1
        for i in range(len(phases)):
            if i and silent[i - 1] and last >= 0:
                self._spoke[i] = last
            last = last if silent[i] else i
        self.total = math.floor(self._totals[-2] + _ROUNDING) if silent[-1] and not repeat else None

    def cumulative(self, seconds: Floats) -> Floats:
        """The integral of the rate from 0 to each of `seconds`, in records; 0 before the start."""
        seconds = np.maximum(np.asarray(seconds, np.float64), 0.0)
        before: Floats | float = 0.0
        if self._cycle:
            cycles = np.floor(seconds / self._cycle[0])
            before = cycles * self._cycle[1]
            seconds = seconds - cycles * self._cycle[0]
        phase = np.clip(np.searchsorted(self._starts, seconds, side="right") - 1, 0, len(self.phases) - 1)
        return before + self._by_phase(phase, seconds, self._starts, self._totals, lambda phase, at: phase.amount(at))

    def due_time(self, record: NDArray[np.int64]) -> Floats:
        """The instant at which each record is due; infinity for one that never comes."""
        amount = np.asarray(record, np.float64) + 1.0
        before: Floats | float = 0.0
        if self._cycle:
            cycles = np.ceil(amount / self._cycle[1]) - 1
            before = cycles * self._cycle[0]
            amount = amount - cycles * self._cycle[1]
        phase = np.clip(np.searchsorted(self._totals, amount, side="left") - 1, 0, len(self.phases) - 1)
        phase = np.where(amount - self._totals[phase] <= _ROUNDING, self._spoke[phase], phase)
        due = before + self._by_phase(phase, amount, self._totals, self._starts, lambda phase, at: phase.when(at))
        return due if self.total is None else np.where(np.asarray(record) < self.total, due, np.inf)

    def due(self, seconds: float) -> int:
        """How many whole records are due after `seconds`."""
        return math.floor(float(self.cumulative(np.array([seconds]))[0]) + _ROUNDING)

    def first_at(self, seconds: float) -> int:
        """The number of the first record that is due at `seconds` or later."""
        number = self.due(seconds)
        while number and self.due_time(np.array([number - 1]))[0] >= seconds:
            number -= 1
        while self.due_time(np.array([number]))[0] < seconds:
            number += 1
        return number

    def _by_phase(
        self, phase: NDArray[np.intp], at: Floats, origin: Floats, base: Floats, step: Callable[[Phase, Floats], Floats]
    ) -> Floats:
        out = np.empty_like(at)
        for i in map(int, np.unique(phase)):
            mine = phase == i
            out[mine] = base[i] + step(self.phases[i], at[mine] - origin[i])
        return out
