"""The line through batches: right where they support one, and otherwise the reason why not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerops.signals.capacity import fit_capacity
from tests.tables import cases


def test_a_fit_splits_batch_time_into_overhead_and_rate():
    rows = [1000, 2000, 4000, 8000, 3000, 5000, 6000, 7000]
    overhead, rate = fit_capacity(rows, [0.5 + n / 2000 for n in rows])
    assert overhead == pytest.approx(0.5)
    assert rate == pytest.approx(2000)


ALIKE, EACH_LARGER = [1000, 1001, 999, 1000, 1002, 1000, 998, 1000], [100, 200, 300, 400, 500, 600, 700, 800]
SAME_SIZE = "batches have nearly the same size (the middle 80% spread over 0% of the mean, 20% is needed)"
NOISE = "more rows take longer in only 55% of the pairs of batches"


@cases(
    "rows, seconds, reason",
    ("too few", [100] * 3, [1.0] * 3, "only 3 batches have rows after the run's warm-up; 8 are needed"),
    ("all of one size", ALIKE, [1.0, 1.5, 0.9, 1.1, 1.0, 2.0, 1.0, 1.0], SAME_SIZE),
    ("flat", EACH_LARGER, [2.0] * 8, "batch time does not grow with the rows"),
    ("noise", EACH_LARGER, [3.0, 1.0, 4.0, 2.0, 5.0, 3.0, 1.5, 3.5], NOISE),
)
def test_a_fit_says_why_there_is_no_answer(rows, seconds, reason):
    assert fit_capacity(rows, seconds) == reason


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 10**5)), min_size=8, max_size=60))
def test_a_fit_is_never_negative_and_never_raises(points):
    if sum(n for n, _ in points) == 0:
        return
    fitted = fit_capacity([n for n, _ in points], [s for _, s in points])
    if not isinstance(fitted, str):
        assert fitted[0] >= 0
        assert fitted[1] > 0
