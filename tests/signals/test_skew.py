"""Ratios and scores of skew, None where they are no number."""

from __future__ import annotations

import pytest

from ledgerops.signals import skew


@pytest.mark.parametrize(
    ("values", "ratio", "score"),
    [
        pytest.param([1, 1, 1, 5, 10], 10.0, 86.67, id="FLIP-418's own example, by its formula"),
        pytest.param([1, 1, 5, 5, 5], 1.0, 56.47, id="its other example"),
        pytest.param([7, 7, 7], 1.0, 0.0, id="even"),
        pytest.param([0, 0, 0], None, 0.0, id="nothing anywhere"),
        pytest.param([0, 0, 100], None, 100.0, id="all on one: the median is zero, the score is full"),
        pytest.param([5], None, 0.0, id="a single value has no skew"),
        pytest.param([], None, None, id="no value"),
    ],
)
def test_skew_of_values(values, ratio, score):
    assert skew.skew_ratio(values) == ratio
    assert skew.skew_score(values) == (None if score is None else pytest.approx(score, abs=0.01))


@pytest.mark.parametrize(
    ("largest", "middle", "found"), [(3.0, 2.0, 1.5), (1.0, 0.0, None), (1.0, -1.0, None), (1e300, 5e-324, None)]
)
def test_a_ratio_that_is_no_number_is_unknown(largest, middle, found):
    assert skew.ratio(largest, middle) == found
