"""Values that several commands read from their arguments."""

from argparse import ArgumentTypeError

import pytest

from ledgerops.cli.arg_types import cores, interval, seconds


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


def test_more_cores_than_a_cluster_has_are_refused():
    assert cores("100000") == 100_000
    with pytest.raises(ArgumentTypeError, match="999999999999 cores is out of range: at most 100,000"):
        cores("999999999999")
