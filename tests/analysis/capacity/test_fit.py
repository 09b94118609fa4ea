import numpy as np
import pytest

from ledgerops.analysis.capacity.fit import CONFIDENCE_LEVEL, SEED, fit, observed
from tests.tables import cases

OVERHEAD, RATE = 0.4, 5000.0
INTERVAL = 2.0
SUSTAINABLE = (INTERVAL - OVERHEAD) * RATE / INTERVAL


def batches(seed: int, count: int = 30, noise: float = 0.05, pauses: float = 0.0) -> tuple[list[int], list[float]]:
    """Rows and seconds of batches that follow the line, each with its noise; `pauses` of them take far longer."""
    generator = np.random.default_rng(seed)
    rows = generator.uniform(1000, 3000, count).astype(int)
    seconds = (OVERHEAD + rows / RATE) * (1 + generator.normal(0, noise, count))
    paused = generator.random(count) < pauses
    return [int(n) for n in rows], [
        float(s) for s in np.where(paused, seconds * generator.uniform(2, 5, count), seconds)
    ]


@cases(
    "count, noise, pauses",
    ("noise", 30, 0.05, 0.0),
    ("much noise", 40, 0.10, 0.0),
    ("pauses of the machine", 30, 0.05, 0.08),
    ("few batches", 12, 0.05, 0.0),
)
def test_the_interval_holds_the_truth_as_often_as_it_says(count, noise, pauses):
    held = tried = 0
    for seed in range(120):
        line = fit(*batches(seed, count, noise, pauses))
        if isinstance(line, str):
            continue  # it said that it cannot tell
        found = line.estimate(lambda a, b: (INTERVAL - a) / b / INTERVAL)
        assert found.low <= found.value <= found.high
        held += found.low <= SUSTAINABLE <= found.high
        tried += 1

    assert tried >= 60
    # a binomial of 120 draws lies within 7 points of its mean in 98 % of all cases
    assert held / tried >= CONFIDENCE_LEVEL - 0.07


def test_a_few_pauses_hardly_move_the_line():
    rows, seconds = batches(1, count=40, noise=0.01)
    seconds[5] *= 6
    seconds[20] *= 4
    line = fit(rows, seconds)

    assert not isinstance(line, str)
    assert line.overhead == pytest.approx(OVERHEAD, abs=0.02)
    assert 1 / line.slope == pytest.approx(RATE, rel=0.03)


def test_the_same_batches_give_the_same_interval():
    one, other = fit(*batches(3)), fit(*batches(3))

    assert SEED == 0
    assert not isinstance(one, str) and not isinstance(other, str)
    assert one.estimate(lambda a, b: 1 / b) == other.estimate(lambda a, b: 1 / b)


def test_an_overhead_below_zero_is_none():
    rows = [1000, 1200, 1500, 1800, 2000, 2300, 2600, 3000]
    line = fit(rows, [max(0.05, n / 1000 - 0.5) for n in rows])

    assert not isinstance(line, str)
    assert line.overhead == 0.0
    assert line.estimate(lambda a, b: a).low == 0.0


def test_batches_that_get_slower_drift():
    rows, seconds = batches(2, noise=0.02)
    line = fit(rows, [each * (1 + number / 40) for number, each in enumerate(seconds)])

    assert not isinstance(line, str) and line.drift is not None
    assert line.drift > 1.3


def test_steady_batches_do_not_drift():
    line = fit(*batches(2, noise=0.02))
    assert not isinstance(line, str)
    assert line.drift == pytest.approx(1.0, abs=0.05)


LARGER = [1000 + 100 * n for n in range(20)]
ALIKE = "batches have nearly the same size (the middle 80% spread over 1% of the mean, 20% is needed)"
NO_GROWTH = "batch time does not grow significantly with the rows"


@cases(
    "rows, seconds, reason",
    ("too few", [1000, 2000, 3000], [0.6, 0.8, 1.0], "only 3 batches have rows after the run's warm-up; 8 are needed"),
    ("of one size", [1000, 1010] * 10, [0.6, 0.61] * 10, ALIKE),
    ("the time comes from elsewhere", LARGER, [0.5, 0.7] * 10, NO_GROWTH),
    ("larger ones are quicker", LARGER, [1.0 - n / 4000 for n in LARGER], NO_GROWTH),
    ("always the same time", LARGER, [0.5] * 20, NO_GROWTH),
    ("they grow by chance", LARGER, list(np.random.default_rng(4).normal(1.0, 0.2, 20)), NO_GROWTH),
)
def test_batches_that_are_no_line_are_told_as_such(rows, seconds, reason):
    assert fit(rows, seconds) == reason


def test_saturated_batches_of_one_size_tell_of_that_size_only():
    line = observed([1000] * 5, [2.0, 2.1, 1.9, 2.0, 6.0])
    assert line.slope == pytest.approx(0.002)
    assert line.reach(1200) < line.trusted < line.reach(2000)
