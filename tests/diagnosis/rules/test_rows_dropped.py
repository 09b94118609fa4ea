from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.rows_dropped import RULE
from tests.diagnosis.conftest import told_by
from tests.tables import cases

JOIN, APPLY = "symmetricHashJoin", "applyInPandasWithState-2"


def drops(count: int, name: str = "dedupe") -> dict:
    return {"name": name, "dropped_rows": count}


COUNTED = "Spark counts groups after partial aggregation, so the share is unknown"
AT_LEAST = f"at least 1,000 rows were dropped by stateStoreSave in the last minute; {COUNTED}"


@cases(
    "operators, said",
    ("some", [drops(0)] + [drops(200)] * 4, "800 rows (7.3% of those read) were dropped by dedupe in the last minute"),
    ("a join", [drops(200, JOIN)] * 5, f"1,000 rows (9.1% of those read) were dropped by {JOIN} in the last minute"),
    (
        "a function",
        [drops(200, APPLY)] * 5,
        f"1,000 rows (9.1% of those read) were dropped by {APPLY} in the last minute",
    ),
    ("an aggregation", [drops(200, "stateStoreSave")] * 5, AT_LEAST),
)
def test_dropped_rows_are_found_with_their_share(history, operators, said):
    [finding] = RULE.check(history(operators=operators))
    assert finding.summary == said
    assert ("dropped_share" in told_by(finding)) is ("%" in said)


def test_of_a_query_whose_batches_are_minutes_apart_the_last_ones_count(history):
    hourly = {"interval": 600.0, "warm": 3, "quiet_for": 590}
    [finding] = RULE.check(history(**hourly, seconds=[5.0] * 2, operators=[drops(200), drops(0)]))
    assert finding.summary.startswith("200 rows") and "by dedupe in the last 30 min" in finding.summary
    assert list(RULE.check(history(**hourly, seconds=[5.0] * 5, operators=[drops(200)] + [drops(0)] * 4))) == []


def test_all_that_was_dropped_since_it_began_is_told_and_late_rows_explain_it(history):
    [finding] = RULE.check(history(operators=[drops(10)] * 50))
    assert told_by(finding)["rows_dropped_since_began"] == 500
    [root] = Diagnoser()(history(operators=[drops(200)] * 5)).root_causes
    assert (root.rule, root.explains) == ("late-data", ("rows-dropped",))


@cases(
    "operators, more",
    ("sixty rows", [drops(60)] + [drops(0)] * 4, {}),
    ("1 in 600", [drops(60)] + [drops(0)] * 4, {"rows": 6000}),
    ("three intervals ago", [drops(500)] + [drops(0)] * 3, {"interval": 10.0}),
)
def test_few_rows_or_an_earlier_batch_are_enough(history, operators, more):
    assert len(list(RULE.check(history(operators=operators, **more)))) == 1


@cases(
    "operators, more",
    ("a few stragglers", [drops(9)] * 5, {"rows": 100}),
    ("a tiny share", [drops(20)] * 5, {"rows": 100_000}),
    ("it is over", [drops(500)] + [drops(0)] * 11, {}),
    ("no row was read", [drops(500)] * 5, {"rows": 0, "warm": 0}),
    ("1 in 1,400", [drops(60)] + [drops(0)] * 4, {"rows": 20_000}),
)
def test_others_are_not(history, operators, more):
    assert list(RULE.check(history(operators=operators, **more))) == []
