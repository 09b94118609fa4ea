"""Values that several commands read from their arguments."""

from __future__ import annotations

from argparse import ArgumentTypeError

import pytest

from ledgerops.cli.arg_types import interval, seconds, whole


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90.0), ("1.5m", 90.0), ("2 h", 7200.0), ("36500d", 3_153_600_000.0)]
)
def test_a_duration_is_read_in_its_unit(text, value):
    assert seconds(text) == interval(text) == value


@pytest.mark.parametrize("text", ["36501d", "9" * 30, "9" * 5000], ids=len)
def test_a_duration_that_nothing_could_wait_for_is_refused(text):
    for read in (seconds, interval):
        with pytest.raises(ArgumentTypeError, match="is out of range: at most 36500d"):
            read(text)


def test_a_number_that_spark_could_not_hold_is_refused():
    assert whole("2147483647") == 2**31 - 1
    with pytest.raises(ArgumentTypeError, match="'2147483648' is out of range: at most 2147483647"):
        whole("2147483648")
