import pytest

from ledgerops.diagnosis.rules.late_data import RULE
from tests.diagnosis.conftest import START
from tests.diagnosis.rules.retelling import retold
from tests.tables import cases


def drops(count: int, name: str = "dedupe") -> dict:
    return {"name": name, "dropped_rows": count}


def test_dropped_rows_are_found(history):
    [finding] = RULE.check(history(seconds=[1] * 5, operators=drops(200), plan={"watermarks": {"event_time": 30.0}}))
    assert finding.summary == (
        "1,000 rows (9.1% of those read) were dropped as late by dedupe in the last minute (allowed lateness 30 s)"
    )


@pytest.mark.parametrize("name", ["stateStoreSave", "sessionWindowStateStoreSaveExec"])
def test_an_aggregation_says_at_least(history, name):
    [finding] = RULE.check(history(seconds=[1] * 5, operators=drops(200, name)))

    assert finding.summary == (
        f"at least 1,000 rows were dropped as late by {name} in the last minute; "
        "Spark counts groups after partial aggregation, so the share is unknown"
    )
    assert "dropped_share" not in [each.name for each in finding.evidence]


@cases(
    "oldest, words",
    ("a missing time", 0.0, "1970-01-01: a missing time read as 0?"),
    ("seconds read as milliseconds", START / 1e3, "1970-01-21: seconds read as milliseconds?"),
    ("seconds read as microseconds", START / 1e6, "1970-01-01: seconds read as microseconds?"),
)
def test_event_times_of_1970_are_no_late_producer(history, oldest, words):
    view = history(operators=[drops(200)] * 5)
    [finding] = RULE.check(retold(view, lambda n, batch: {"event_time_min": oldest, "watermark": START - 60}))

    assert finding.summary.endswith(f"in the last minute; the oldest event time is {words}")
    assert [each.value for each in finding.evidence if each.name == "oldest_event_time_seconds"] == [oldest]
    assert "column of withWatermark" in finding.remedies[0].action


def test_of_a_query_whose_batches_are_minutes_apart_the_last_ones_count(history):
    hourly = {"interval": 600.0, "warm": 3, "seconds": [5.0] * 2, "operators": [drops(200), drops(0)]}
    [finding] = RULE.check(history(**hourly, quiet_for=590))

    assert finding.summary.startswith("200 rows") and "by dedupe in the last 30 min" in finding.summary
    assert (
        list(RULE.check(history(**{**hourly, "seconds": [5.0] * 5, "operators": [drops(200)] + [drops(0)] * 4}))) == []
    )


def test_rows_of_another_year_are_late(history):
    view = history(operators=[drops(200)] * 5)
    year_2001 = 1e9
    [finding] = RULE.check(retold(view, lambda n, batch: {"event_time_min": year_2001, "watermark": START}))

    assert finding.summary.endswith("; the oldest was 9143 d 12 h behind the watermark")
    assert finding.remedies[0].action == "find the producer that sends late"


@cases(
    "case",
    ("late, but inside the delay", {"seconds": [1] * 5, "operators": drops(0)}),
    ("a few stragglers", {"seconds": [1] * 5, "operators": drops(9), "rows": 100}),
    ("a tiny share", {"seconds": [1] * 5, "operators": drops(20), "rows": 100_000}),
    ("over a minute ago", {"seconds": [1] * 40, "operators": [drops(500)] + [drops(0)] * 39}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []
