import pytest

from load.bench.lines import NO, UNKNOWN, YES, Compared, Line, Measured, compare, least, limit, read, table
from tests.tables import cases


def test_runs_are_compared_within_their_round():
    # the machine is half as fast in the second round, for all alike
    found = compare(bare=[100, 50, 100], again=[102, 51, 98], other=[99, 49.5, 99])
    assert found.ratio == pytest.approx(0.98, abs=0.011)
    assert (found.noise, found.spread) == (1.02, pytest.approx(0.02))
    assert found.floor == "1.020 ± 0.020"


def test_the_noise_floor_falls_with_the_number_of_rounds():
    few, many = (compare([1.0] * 4 * n, [0.99, 1.0, 1.01, 1.0] * n, [1.0] * 4 * n) for n in (1, 10))
    assert many.spread < few.spread


def test_rounds_that_lack_a_run_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        compare([1.0, 1.0], [1.0, 1.0], [1.0])


@cases(
    "ratio, noise, spread, told",
    ("exactly the budget", 1.02, 1.0, 0.0, YES),
    ("less than allowed, however noisy", 0.9, 1.0, 0.5, YES),
    ("missed by less than the rounds differ", 1.03, 1.0, 0.02, UNKNOWN),
    ("missed by less than equal runs differ", 1.03, 1.015, 0.0, UNKNOWN),
    ("missed by more than the noise", 1.03, 1.001, 0.005, NO),
)
def test_a_budget_is_held_broken_or_not_told_from_noise(ratio, noise, spread, told):
    assert Compared(ratio, noise, spread).at_most(1.02) == told


def test_limits_hold_at_their_value_and_not_beyond():
    assert [limit("a", value, "", 5, "<= 5").holds for value in (5, 5.01)] == [YES, NO]
    assert [least("a", value, "", 5, ">= 5").holds for value in (5, 4.99)] == [YES, NO]


def test_columns_that_no_line_uses_are_left_out():
    assert table([Line("a", "1"), Line("b", "2", budget="<= 3", holds=YES)]) == (
        "| what | measured | budget | holds |\n| --- | --- | --- | --- |\n| a | 1 |  |  |\n| b | 2 | <= 3 | yes |\n"
    )


def test_what_was_kept_is_read_back(tmp_path):
    measured = Measured("growth", "2026-01-01 10:00 UTC", 3.5, "2 cores", [Line("a", "1", "n", "b", NO)])
    measured.write(tmp_path / "new")
    assert read(tmp_path / "new", "growth") == measured
    assert read(tmp_path / "new", "scrape") is None
