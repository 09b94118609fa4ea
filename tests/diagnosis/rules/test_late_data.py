import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.late_data import RULE
from ledgerops.diagnosis.rules.rows_dropped import RULE as ROWS_DROPPED
from tests.diagnosis.conftest import START, told_by
from tests.diagnosis.rules.retelling import retold
from tests.tables import cases


def drops(count: int, name: str = "dedupe") -> dict:
    return {"name": name, "dropped_rows": count}


@cases(
    "name, said",
    ("of distinct rows", "dedupe", "1,000 rows (9.1% of those read) were dropped as late by dedupe in the last minute"),
    (
        "of an aggregation at least so many",
        "sessionWindowStateStoreSaveExec",
        "at least 1,000 rows were dropped as late by sessionWindowStateStoreSaveExec in the last minute",
    ),
)
def test_dropped_rows_are_found_with_the_allowed_lateness(history, name, said):
    plan = {"watermarks": {"event_time": 30.0}}
    [finding] = RULE.check(history(seconds=[1] * 5, operators=drops(200, name), plan=plan))
    assert finding.summary.startswith(f"{said} (allowed lateness 30 s)")
    assert finding.share == (pytest.approx(1000 / 11_000) if name == "dedupe" else None)


YEAR_2001, PRODUCER, COLUMN = 1e9, "find the producer that sends late", "check the column of withWatermark"


@cases(
    "oldest, words, step",
    ("of another year", YEAR_2001, "; the oldest was 9143 d 12 h behind the watermark", PRODUCER),
    ("missing", 0.0, "; the oldest event time is 1970-01-01: a missing time read as 0?", COLUMN),
    ("milliseconds", START / 1e3, "; the oldest event time is 1970-01-21: seconds read as milliseconds?", COLUMN),
    ("microseconds", START / 1e6, "; the oldest event time is 1970-01-01: seconds read as microseconds?", COLUMN),
)
def test_the_oldest_row_is_told_and_event_times_of_1970_are_no_late_producer(history, oldest, words, step):
    view = history(operators=[drops(200)] * 5)
    [finding] = RULE.check(retold(view, lambda n, batch: {"event_time_min": oldest, "watermark": START}))

    assert finding.summary.endswith(f"in the last minute{words}")
    assert told_by(finding).get("oldest_event_time_seconds") == (None if step == PRODUCER else oldest)
    assert finding.remedies[0].action.startswith(step)


@cases(
    "dropped, told",
    ("just below the limit, as before it was told", [90], False),
    ("and just below it after that: it would come and go with noise", [150, 90], True),
    ("clearly less than that", [150, 70], False),
)
def test_what_is_told_stays_until_it_is_clearly_less(history, dropped, told):
    diagnose = Diagnoser((RULE, ROWS_DROPPED))
    for place, share in enumerate(dropped):
        verdict = diagnose(history(seconds=[1] * (50 + 20 * place), rows=100_000, operators=drops(share)))
    assert bool(verdict.findings) is told
