"""By how much two series of batches differ. Consecutive batches are alike, and must not count as independent.

- The estimate is Hodges and Lehmann's: the median of all differences between a later and an earlier value. Durations
  have a heavy tail, which a mean would follow (Hodges, Lehmann 1963, Annals of Mathematical Statistics 34).
- Its interval comes from turning the Mann-Whitney test around: quantiles of the same differences. Their distance from
  the middle shrinks with the number of values that are as good as independent, not with the number of batches.
- That number is n over the integrated autocorrelation time (Sokal 1997, "Monte Carlo methods in statistical mechanics",
  section 3: the sum up to the first window that is five times as wide), of ranks, so that one pause of the machine does
  not decide it. Short series look less correlated than they are: Kendall's correction (1954, Biometrika 41) is added.
"""

from collections.abc import Sequence
from statistics import NormalDist, median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ledgerops.signals.theil_sen import pair_slopes

Floats = npt.NDArray[np.float64]
SOKAL_WINDOW = 5.0  # times the autocorrelation time: Sokal's choice, where bias and noise are about even
MAX_VALUES = 800  # of a side whose differences are formed: enough for 1 % of the spread
MAX_CORRELATION = 0.99  # a correlation above this is a trend


class Shift(NamedTuple):
    """From one side to the other; `low` and `high` bound the difference. Infinite where there is too little to tell."""

    before: float  # median
    after: float
    difference: float
    low: float
    high: float


def independent(values: Sequence[float] | Floats) -> float:
    """The number of independent values that a series in the order of time is equal to; from 1 to its length."""
    count = len(values)
    if count < 4:
        return float(count)
    ranks = _ranks(np.asarray(values, dtype=float))
    ranks -= ranks.mean()
    spread = float(ranks @ ranks)
    if spread == 0:
        return float(count)
    first = float(ranks[1:] @ ranks[:-1]) / spread
    first = min(MAX_CORRELATION, first + (1 + 3 * first) / count)
    tau, lag = 1.0, 0
    while lag < count // 2 and lag < SOKAL_WINDOW * tau:
        lag += 1
        tau += 2 * (float(ranks[lag:] @ ranks[:-lag]) / spread + 1 / count)
    tau = max(1.0, tau, (1 + first) / (1 - first))
    return max(1.0, count / tau)


def shift(before: Sequence[float], after: Sequence[float], level: float) -> Shift:
    """The difference with an interval that holds it with probability `level`. Both sides must have a value."""
    first, second = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    worth = independent(first), independent(second)
    differences = (_some(second)[:, None] - _some(first)[None, :]).ravel()
    reach = _student(level, max(1.0, sum(worth) - 2)) * float(
        np.sqrt((worth[0] + worth[1] + 1) / (12 * worth[0] * worth[1]))
    )
    low, high = -np.inf, np.inf
    if reach < 0.5:
        low, high = np.quantile(differences, [0.5 - reach, 0.5 + reach])
    return Shift(
        float(np.median(first)), float(np.median(second)), float(np.median(differences)), float(low), float(high)
    )


def _student(level: float, freedom: float) -> float:
    """Student's quantile in place of the normal one, for the number of independent values is an estimate, too. Cornish
    and Fisher's expansion (Abramowitz, Stegun 26.7.5): within 1 % from 6 degrees of freedom on."""
    z = NormalDist().inv_cdf(0.5 + level / 2)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Theil and Sen's: the median of the slopes between all pairs; 0 where all x are alike."""
    across, along = _some(np.asarray(x, dtype=float)), _some(np.asarray(y, dtype=float))
    slopes = pair_slopes(across.tolist(), along.tolist())
    return median(slopes) if slopes else 0.0


def _ranks(values: Floats) -> Floats:
    """Ranks from 0, the mean rank for values that are alike."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    upto = np.cumsum(counts)
    return np.asarray(((upto - 1 + upto - counts) / 2)[place], dtype=np.float64)


def _some(values: Floats) -> Floats:
    """At most MAX_VALUES values, evenly over the series."""
    if len(values) <= MAX_VALUES:
        return values
    some: Floats = values[np.linspace(0, len(values) - 1, MAX_VALUES).astype(int)]
    return some
