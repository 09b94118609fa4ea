"""The verdict on an output by its counts."""

import pytest

from ledgerops.ledger.verify.result import JobCheck, judge


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        pytest.param({"rows": 0, "lost": 0, "repeated": 0}, "nothing to verify", id="no rows"),
        pytest.param({"rows": 0, "lost": 3}, "broken", id="no rows, and some are lost"),
        pytest.param({"rows": 5, "lost": 0, "repeated": 0}, "holds", id="all rows"),
        pytest.param({"lost": 0}, "holds", id="rows not counted"),
    ],
)
def test_an_output_without_rows_is_not_said_to_hold(counts, verdict):
    assert judge(JobCheck("daily_counts", "not checked", **counts), lenient=False).verdict == verdict
