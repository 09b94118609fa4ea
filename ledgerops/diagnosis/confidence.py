"""How sure a finding is, in two steps: just over its limit, or clearly."""

from __future__ import annotations

CLEAR_TIMES = 2.0  # the limit: from there on a number is no longer a matter of chance
CLEAR, LIKELY = 0.95, 0.8


def confidence(value: float, limit: float) -> float:
    """0 to 1, by a measured number and the limit that it exceeds."""
    return CLEAR if value >= CLEAR_TIMES * limit else LIKELY
