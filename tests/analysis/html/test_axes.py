import pytest

from ledgerops.analysis.html.axes import Scale, axis_top, elapsed_ticks, utc_ticks


@pytest.mark.parametrize(
    ("values", "top"), [([], 1.0), ([4.1], 5.0), ([0.2], 1.0), ([1234.0], 1600.0), ([10.0], 10.0), ([9.7e8], 1e9)]
)
def test_an_axis_ends_at_a_round_number_above_all(values, top):
    assert axis_top(values, 1.0) == pytest.approx(top)


def test_what_lies_outside_is_drawn_at_the_edge():
    scale = Scale(10.0, 20.0, 0.0, 100.0)
    assert [scale(value) for value in (0.0, 10.0, 15.0, 99.0)] == [0.0, 0.0, 50.0, 100.0]
    assert Scale(5.0, 5.0, 3.0, 9.0)(5.0) == 3.0


@pytest.mark.parametrize("span", [0.001, 1.0, 59.0, 3600.0, 86_400.0, 4e8])
def test_there_are_a_few_round_instants_whatever_the_span(span):
    ticks = utc_ticks(1_800_000_000.0, 1_800_000_000.0 + span)
    assert len(ticks) <= 9 and all(at >= 1_800_000_000.0 for at, _ in ticks)


def test_an_axis_that_ends_later_than_there_are_dates_has_ticks():
    assert utc_ticks(253_402_300_000.0, 253_402_400_000.0)[-1][1] == "23:58"


@pytest.mark.parametrize("span", [0.0, 1.0, 59.0, 3600.0, 4e8])
def test_elapsed_times_begin_at_zero_and_are_few(span):
    ticks = elapsed_ticks(1_800_000_000.0, 1_800_000_000.0 + span)
    assert ticks[0] == (1_800_000_000.0, "0") and len(ticks) <= 11


def test_elapsed_times_are_labelled_in_the_unit():
    assert elapsed_ticks(100.0, 340.0, unit_seconds=60.0)[-1] == (340.0, "4")
