"""Whether a sampled figure stays flat: its slope by Theil and Sen, how sure that is, and what is allowed. Pure."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from ledgerops.signals.theil_sen import pair_slopes
from load.bench.lines import NO, YES, Line

WARM_UP_SHARE = 0.25  # of the time at the start is not judged: caches, pools and bounded histories fill up
Z = 1.96  # of a 95 % interval
MIN_SAMPLES = 10  # after the warm-up; fewer say nothing


class Slope(NamedTuple):
    """Units a second, with the ends of the 95 % interval."""

    value: float
    low: float
    high: float


class Flatness(NamedTuple):
    """What became of one figure after the warm-up."""

    name: str
    unit: str
    median: float
    highest: float
    growth: float  # over the judged time, by the slope
    allowed: str
    flat: bool | None  # None: reported, not judged
    sure: bool  # whether the growth differs from none

    @property
    def share(self) -> str:
        """Of the median, for a reader."""
        doubt = "" if self.sure or self.growth <= 0 else ", within noise"
        return f" ({self.growth / self.median:+.1%}{doubt})" if self.median else ""

    @property
    def line(self) -> Line:
        """Its row of the table."""
        middle = f"{self.median:,.1f} {self.unit}".strip()
        figure = f"{middle} in the middle, {self.highest:,.1f} at most; growth {self.growth:+,.2f}{self.share}"
        return Line(self.name, figure, budget=self.allowed, holds={True: YES, False: NO, None: ""}[self.flat])


def theil_sen(times: Sequence[float], values: Sequence[float]) -> Slope:
    """The median of the slopes between all pairs of points, with Sen's interval (Sen 1968, by Kendall's variance).

    A step or a few outliers do not move it. The interval takes samples as independent; where one is like the one
    before, it is too narrow, so that growth is rather suspected than overlooked. Raises ValueError for fewer than
    three instants.
    """
    if len(set(times)) < 3:
        raise ValueError("a slope needs three instants")
    slopes = pair_slopes(times, values)
    count, n = len(slopes), len(times)
    reach = Z * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = max(0, math.floor((count - reach) / 2))
    high = min(count - 1, math.ceil((count + reach) / 2))
    return Slope(statistics.median(slopes), slopes[low], slopes[high])


def first_judged(times: Sequence[float], share: float = WARM_UP_SHARE) -> int:
    """Index of the first sample that is judged."""
    if not times:
        return 0
    began = times[0] + share * (times[-1] - times[0])
    return next(index for index, at in enumerate(times) if at >= began)


def grows(name: str, unit: str, times: Sequence[float], values: Sequence[float], share: float | None) -> Flatness:
    """Flat when the growth over the judged time is at most `share` of the median, or does not differ from none.

    With `share` None the figure is reported and not judged. Raises ValueError for fewer than MIN_SAMPLES to judge.
    """
    start = first_judged(times)
    x, y = times[start:], values[start:]
    if len(x) < MIN_SAMPLES:
        raise ValueError(f"{len(x)} samples after the warm-up, {MIN_SAMPLES} are needed; run longer")
    slope, middle = theil_sen(x, y), statistics.median(y)
    growth = slope.value * (x[-1] - x[0])
    sure = slope.low > 0
    flat = None if share is None else growth <= share * abs(middle) or not sure
    allowed = "" if share is None else f"growth <= {share:.0%}"
    return Flatness(name, unit, middle, max(y), growth, allowed, flat, sure)


def alike(values: Sequence[float], loads: Sequence[float], start: int = 0) -> list[float]:
    """The values as they would be if the load had always been its median, by the line of Theil and Sen.

    Line and median come from the values that are judged, those from `start` on. Without two different loads among
    them the values stay as they are.
    """
    slopes = pair_slopes(loads[start:], values[start:])
    if not slopes:
        return list(values)
    slope, middle = statistics.median(slopes), statistics.median(loads[start:])
    return [value - slope * (load - middle) for value, load in zip(values, loads, strict=True)]


def bounded(name: str, unit: str, times: Sequence[float], values: Sequence[float], most: float) -> Flatness:
    """Flat when no judged sample is above `most`."""
    found = grows(name, unit, times, values, None)
    return found._replace(allowed=f"<= {most:g}", flat=found.highest <= most)
