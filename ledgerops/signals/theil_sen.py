"""The line of Theil and Sen: its slope is the median of the slopes between all pairs of points.

A few outliers do not move it, where the line of least squares would follow them.
"""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Line(NamedTuple):
    """y = overhead + slope * x. `agreement` is the share of rising pairs less that of falling ones, -1 to 1."""

    overhead: float
    slope: float
    agreement: float


def pair_slopes(x: Sequence[float], y: Sequence[float]) -> list[float]:
    """The slopes between all pairs of points whose x differ, in rising order."""
    found = []
    for place, (across, along) in enumerate(zip(x, y, strict=True)):
        for other in range(place + 1, len(x)):
            run = x[other] - across
            if run:
                found.append((y[other] - along) / run)
    found.sort()
    return found


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line | None:
    """The line through points of x and y that are not negative; None where all x are alike. An overhead below zero is
    taken as zero, and the line laid through the origin."""
    slopes = pair_slopes(x, y)
    if not slopes:
        return None
    slope = median(slopes)
    overhead = median([along - slope * across for across, along in zip(x, y, strict=True)])
    if overhead < 0:
        overhead, slope = 0.0, median([along / across for across, along in zip(x, y, strict=True) if across > 0])
    rising = sum(1 for each in slopes if each > 0)
    falling = sum(1 for each in slopes if each < 0)
    return Line(overhead, slope, (rising - falling) / len(slopes))
