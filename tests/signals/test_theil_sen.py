"""The line of Theil and Sen, which the metric, `ledgerops capacity` and the comparisons share."""

import pytest

from ledgerops.signals.theil_sen import Line, fit_line, pair_slopes


def test_one_outlier_does_not_move_the_line():
    rows = [1000.0, 2000.0, 3000.0, 4000.0, 5000.0, 6000.0, 7000.0]
    seconds = [0.5 + each / 1000 for each in rows]
    assert fit_line(rows, [*seconds[:-1], 90.0])[:2] == pytest.approx((0.5, 0.001))


def test_an_overhead_below_zero_is_taken_as_zero_and_points_of_one_x_have_no_slope():
    assert fit_line([1.0, 2.0, 3.0], [1.0, 4.0, 9.0]) == Line(0.0, 2.0, 1.0)
    assert (pair_slopes([2.0, 2.0], [1.0, 5.0]), fit_line([2.0, 2.0], [1.0, 5.0])) == ([], None)
