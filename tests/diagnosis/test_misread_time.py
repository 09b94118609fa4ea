from __future__ import annotations

import pytest

from ledgerops.diagnosis.facts.misread_time import misread

NOW = 1_795_440_000.0  # 2026-11-23
YEAR = 365.25 * 86_400


@pytest.mark.parametrize(
    ("at", "question"),
    [
        pytest.param(NOW * 1e3, "in the year 58865: milliseconds read as seconds?", id="milliseconds"),
        pytest.param(1e9 * 1e3, "in the year 33658: milliseconds read as seconds?", id="milliseconds of 2001"),
        pytest.param(NOW * 1e6, "in the year 56897198: microseconds read as seconds?", id="microseconds"),
        pytest.param(NOW / 1e3, "1970-01-21: seconds read as milliseconds?", id="seconds as milliseconds"),
        pytest.param(NOW / 1e6, "1970-01-01: seconds read as microseconds?", id="seconds as microseconds"),
        pytest.param(0.0, "1970-01-01: a missing time read as 0?", id="nothing"),
    ],
)
def test_a_number_that_is_no_time_is_named(at, question):
    found = misread(at, NOW)

    assert found is not None
    assert found.question == question


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(None, id="unknown"),
        pytest.param(NOW, id="now"),
        pytest.param(NOW - 50 * YEAR, id="fifty years ago"),
        pytest.param(NOW + 100 * YEAR, id="in a hundred years"),
        pytest.param(253_402_300_799.0, id="the year 9999, which means for ever"),
        pytest.param(-1.0, id="before 1970"),
        pytest.param(86_400.0 * 200, id="a day of summer 1970"),
    ],
)
def test_other_times_are_times(at):
    assert misread(at, NOW) is None


def test_nothing_is_compared_with_a_clock_that_was_never_set():
    assert misread(5.0, 0.0) is None
