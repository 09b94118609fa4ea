import random

import pytest

from load.bench.soak_verdict import bounded, first_judged, grows, theil_sen
from tests.tables import cases

TIMES = [10.0 * number for number in range(60)]
JITTER = [random.Random(seed).uniform(-1, 1) for seed in range(60)]


def test_the_slope_of_a_line_is_its_slope_and_sure():
    assert theil_sen([0, 1, 2, 3, 4, 5, 6], [5, 7, 9, 11, 13, 15, 17]) == (2, 2, 2)


def test_outliers_do_not_move_the_slope():
    values = [1.0 * number for number in range(40)]
    values[5], values[20] = 1000.0, -500.0
    assert theil_sen(list(range(40)), values).value == pytest.approx(1.0)


def test_an_interval_around_noise_holds_zero():
    slope = theil_sen(TIMES, [100 + each for each in JITTER])
    assert slope.low < 0 < slope.high


def test_samples_of_two_instants_have_no_slope_and_too_few_say_nothing():
    with pytest.raises(ValueError, match="a slope needs three instants"):
        theil_sen([1, 1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="7 samples after the warm-up, 10 are needed; run longer"):
        grows("memory", "MiB", TIMES[:10], TIMES[:10], 0.05)


def leak(noise):
    values = [100 + 0.05 * at + noise * each for at, each in zip(TIMES, JITTER, strict=True)]
    return grows("memory", "MiB", TIMES, values, 0.05)


def test_a_leak_is_told_with_its_growth_over_the_judged_time():
    found = leak(noise=1)
    assert found.flat is False
    assert found.growth == pytest.approx(0.05 * 440, rel=0.1)


@cases(
    "values",
    ("a constant", [100.0] * 60),
    ("noise", [100 + 5 * each for each in JITTER]),
    ("a growth within its share", [100 + 0.005 * at for at in TIMES]),
    ("what fills up in the warm-up and stays", [10.0 * min(at, 140) for at in TIMES]),
    ("falling", [300 - 0.2 * at for at in TIMES]),
    ("nothing at all", [0.0] * 60),
)
def test_others_are_flat(values):
    assert grows("memory", "MiB", TIMES, values, 0.05).flat


def test_a_growth_that_noise_may_be_is_called_that():
    assert leak(noise=10).share == " (+15.6%)"
    assert leak(noise=30).share == " (+9.6%, within noise)"


def test_a_bound_is_judged_by_the_highest_after_the_warm_up():
    early = [9.0, *[1.0] * 59]
    assert bounded("queue", "", TIMES, early, 2).flat
    assert bounded("queue", "", TIMES, [*early[:-1], 3.0], 2).flat is False


def test_what_is_only_told_is_neither():
    assert grows("scrape", "ms", TIMES, [1.0 * at for at in TIMES], None).flat is None


def test_the_warm_up_is_a_quarter_of_the_time():
    assert TIMES[first_judged(TIMES)] == 150.0
    assert first_judged([]) == 0


def test_a_row_says_what_was_allowed():
    queue = bounded("queue", "events", TIMES, [1.0] * 60, 2).line
    scrape = grows("scrape", "ms", TIMES, [4.0] * 60, None).line

    assert (queue.figure, queue.budget, queue.holds) == (
        "1.0 events in the middle, 1.0 at most; growth +0.00 (+0.0%)", "<= 2", "yes",
    )  # fmt: skip
    assert (scrape.budget, scrape.holds) == ("", "")
