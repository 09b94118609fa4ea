"""How sure a finding is, in two steps: just over its limit, or clearly. A guess is neither."""

from __future__ import annotations

from ledgerops.diagnosis.limits import CLEAR_TIMES

CLEAR, LIKELY, UNSURE = 0.95, 0.8, 0.5


def confidence(value: float, limit: float) -> float:
    """0 to 1, by a measured number and the limit that it exceeds."""
    return CLEAR if value >= CLEAR_TIMES * limit else LIKELY
