import pytest

from ledgerops.diagnosis.rules.late_data import RULE


def drops(count: int, name: str = "dedupe") -> dict:
    return {"name": name, "dropped_rows": count}


def test_dropped_rows_are_found(history):
    [finding] = RULE.check(
        history(seconds=[1] * 5, operators=[drops(200)] * 5, plan={"watermarks": {"event_time": 30.0}})
    )

    assert finding.summary == (
        "1,000 rows (9.1%) were dropped as late by dedupe in the last minute (allowed lateness 30 s)"
    )


def test_an_aggregation_says_at_least(history):
    [finding] = RULE.check(history(seconds=[1] * 5, operators=[drops(200, "stateStoreSave")] * 5))

    assert finding.summary == "at least 1,000 rows (9.1%) were dropped as late by stateStoreSave in the last minute"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [1] * 5, "operators": [drops(0)] * 5}, id="late, but inside the delay"),
        pytest.param({"seconds": [1] * 5, "operators": [drops(9)] * 5, "rows": 100}, id="a few stragglers"),
        pytest.param({"seconds": [1] * 5, "operators": [drops(20)] * 5, "rows": 100_000}, id="a tiny share"),
        pytest.param({"seconds": [1] * 40, "operators": [drops(500)] + [drops(0)] * 39}, id="over a minute ago"),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []
