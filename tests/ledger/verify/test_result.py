"""The verdict on an output by its counts."""

from ledgerops.ledger.verify.result import JobCheck, judge
from tests.tables import cases


@cases(
    "counts, verdict",
    ("no rows", {"rows": 0, "lost": 0, "repeated": 0}, "nothing to verify"),
    ("no rows, and some are lost", {"rows": 0, "lost": 3}, "broken"),
    ("all rows", {"rows": 5, "lost": 0, "repeated": 0}, "holds"),
    ("rows not counted", {"lost": 0}, "holds"),
)
def test_an_output_without_rows_is_not_said_to_hold(counts, verdict):
    assert judge(JobCheck("daily_counts", "not checked", **counts), lenient=False).verdict == verdict
