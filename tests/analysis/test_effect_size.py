"""Differences of two series, against a known truth over many seeds."""

import math

import numpy as np
import pytest

from ledgerops.analysis.effect_size import independent, shift, slope


def series(random, count, correlation=0.0, heavy=False):
    """Log-normal durations around 1, or with a heavier tail; each resembles the one before by `correlation`."""
    noise = random.standard_t(3, count + 40) if heavy else random.normal(size=count + 40)
    values = np.zeros(count + 40)
    for index in range(1, len(values)):
        values[index] = correlation * values[index - 1] + noise[index]
    return np.exp(0.1 * values[40:])


@pytest.mark.parametrize("heavy", [False, True], ids=["normal", "heavy tail"])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("count", [30, 90])
def test_where_nothing_changed_the_interval_holds_zero(count, correlation, heavy):
    random = np.random.default_rng(7)
    seeds = 250
    wrong = 0
    for _ in range(seeds):
        found = shift(series(random, count, correlation, heavy), series(random, count, correlation, heavy), 0.95)
        wrong += found.low > 0 or found.high < 0

    assert wrong / seeds <= 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / seeds)  # binomial noise at 99.5 %


def test_the_interval_holds_the_true_difference():
    random = np.random.default_rng(8)
    held = 0
    for _ in range(200):
        found = shift(series(random, 60, 0.5), series(random, 60, 0.5) + 0.3, 0.95)
        held += found.low <= 0.3 <= found.high
    assert held / 200 >= 0.92


def test_a_difference_that_is_plain_is_seen():
    random = np.random.default_rng(9)
    assert all(shift(series(random, 60, 0.3), 1.5 * series(random, 60, 0.3), 0.99).low > 0 for _ in range(50))


def test_correlated_batches_count_for_less():
    random = np.random.default_rng(10)
    counted = [float(np.mean([independent(series(random, 300, c)) for _ in range(20)])) for c in (0.0, 0.5, 0.9)]

    assert counted[0] > 200
    assert 60 < counted[1] < 130  # 300 * (1 - 0.5) / (1 + 0.5) = 100
    assert counted[2] < 30  # 300 * 0.1 / 1.9 = 16


@pytest.mark.parametrize(
    ("values", "worth"),
    [([1.0], 1), ([1.0, 2.0, 3.0], 3), ([2.0] * 40, 40), (list(range(60)), 5)],
    ids=["one", "three", "all alike", "a trend"],
)
def test_special_series(values, worth):
    assert independent(values) <= worth


def test_with_too_little_the_interval_has_no_end():
    found = shift([1.0, 1.1], [2.0, 2.1], 0.95)
    assert (found.difference, found.low, found.high) == (pytest.approx(1.0), -math.inf, math.inf)


def test_one_pause_of_the_machine_changes_neither_estimate_nor_slope():
    random = np.random.default_rng(11)
    rows = random.integers(100, 1000, 50)
    seconds = 0.2 + rows / 1000
    late = seconds.copy()
    late[20] = 90.0

    assert slope(rows, late) == pytest.approx(0.001, rel=0.02)
    assert abs(shift(seconds, late, 0.95).difference) < 0.05
    assert slope([5, 5, 5], [1, 2, 3]) == 0.0
