"""What is said of a query that has nothing to read, ends by itself, or has ended."""

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics.verdict import FINDING, ROOT_CAUSE

LONGER = {"warm": 0, "seconds": [6.0 + 3 * n for n in range(10)], "rows": [1000 * (n + 1) for n in range(10)]}
ENDS = {"plan": {"trigger": "available_now", "trigger_interval": None}}


def test_findings_clear_when_the_query_has_worked_everything_off(history):
    judge = Diagnoser()
    assert judge(history(**LONGER)).findings
    verdict = judge(history(**LONGER, quiet_for=11, idle=True))
    assert (verdict.status, verdict.findings) == ("idle", ())


def test_a_run_that_works_off_what_is_there_and_ends_does_not_fall_behind(history):
    assert Diagnoser()(history(**LONGER | ENDS)).findings == ()


@pytest.mark.parametrize("metric", [FINDING, ROOT_CAUSE], ids=lambda metric: metric.name)
def test_the_failure_of_a_query_is_a_series_after_its_end(history, metric):
    verdict = Diagnoser()(history(**LONGER | ENDS, exception="boom", error_class="USER_RAISED_EXCEPTION"))
    assert any("query-failed" in labels for labels in metric.read(verdict))
    assert metric.survives
