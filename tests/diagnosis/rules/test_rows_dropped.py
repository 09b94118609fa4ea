import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.rows_dropped import RULE
from tests.tables import cases


def drops(count: int, name: str = "dedupe") -> dict:
    return {"name": name, "dropped_rows": count}


def test_dropped_rows_are_found(history):
    [finding] = RULE.check(history(seconds=[1] * 5, operators=[drops(0)] + [drops(200)] * 4))
    assert finding.summary == "800 rows (7.3% of those read) were dropped by dedupe in the last minute"


def test_an_aggregation_says_at_least(history):
    [finding] = RULE.check(history(seconds=[1] * 5, operators=drops(200, "stateStoreSave")))

    assert finding.summary == (
        "at least 1,000 rows were dropped by stateStoreSave in the last minute; "
        "Spark counts groups after partial aggregation, so the share is unknown"
    )
    assert [each.name for each in finding.evidence] == ["rows_dropped_last_minute", "rows_dropped_since_began"]


@pytest.mark.parametrize("name", ["dedupe", "symmetricHashJoin", "applyInPandasWithState-2"])
def test_an_operator_that_sees_every_row_tells_the_share(history, name):
    [finding] = RULE.check(history(seconds=[1] * 5, operators=drops(200, name)))
    assert finding.summary == f"1,000 rows (9.1% of those read) were dropped by {name} in the last minute"


def test_all_that_was_dropped_since_it_began_is_told(history):
    [finding] = RULE.check(history(seconds=[1] * 50, operators=drops(10)))
    assert finding.evidence[2].value == 500


@cases(
    "case",
    ("sixty rows", {"seconds": [1] * 5, "operators": [drops(60)] + [drops(0)] * 4}),
    ("1 in 600", {"seconds": [1] * 5, "operators": [drops(60)] + [drops(0)] * 4, "rows": 6000}),
    ("fourteen seconds ago", {"seconds": [1] * 8, "operators": [drops(500)] + [drops(0)] * 7}),
    ("three intervals ago", {"seconds": [1] * 4, "operators": [drops(500)] + [drops(0)] * 3, "interval": 10.0}),
)
def test_few_rows_or_an_earlier_batch_are_enough(history, case):
    assert len(list(RULE.check(history(**case)))) == 1


def test_it_is_a_symptom_of_late_rows(history):
    [root] = Diagnoser()(history(seconds=[1] * 5, operators=drops(200))).root_causes
    assert (root.rule, root.explains) == ("late-data", ("rows-dropped",))


@cases(
    "case",
    ("late, but inside the delay", {"seconds": [1] * 5, "operators": drops(0)}),
    ("a few stragglers", {"seconds": [1] * 5, "operators": drops(9), "rows": 100}),
    ("a tiny share", {"seconds": [1] * 5, "operators": drops(20), "rows": 100_000}),
    ("it is over", {"seconds": [1] * 12, "operators": [drops(500)] + [drops(0)] * 11}),
    ("1 in 1,400", {"seconds": [1] * 5, "operators": [drops(60)] + [drops(0)] * 4, "rows": 20_000}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []
