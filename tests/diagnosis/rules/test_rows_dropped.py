from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.rows_dropped import RULE
from tests.diagnosis.conftest import told_by
from tests.diagnosis.rules.retelling import beside_another, retold
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


HALF, FEW = (-290.0, -142.5, 5.0), (-290.0, 2.05, 5.0)  # event times from the watermark on: the oldest, average, newest
A_DAY = 86400.0
IN_TIME, ALL = (1.0, 3.0, 5.0), (-290.0, -288.0, -280.0)


def in_groups(history, times, dropping, operator="stateStoreSave", rows=400, window=10.0, marks=("t",)):
    """Ten batches, the newest of which dropped two groups of rows each, with event times from the watermark on."""
    plan = {"watermarks": dict.fromkeys(marks, 3.0), "window_seconds": window}
    drops_of = [drops(0, operator)] * (10 - dropping) + [drops(2, operator)] * dropping

    def fields(place, batch):
        mark = batch.started - 3.0
        oldest, mean, newest = (mark + each for each in times)
        told = {"watermark": mark, "event_time_min": oldest, "event_time_avg": mean, "event_time_max": newest}
        return told if batch.operators else {}

    return retold(history(operators=drops_of, rows=rows, plan=plan), fields)


@cases(
    "times, dropping, share",
    ("about half, if all of them were as late as the oldest", HALF, 10, "16.9%"),
    ("in fewer batches", HALF, 3, "5.6%"),
    ("all: the newest is late, too", ALL, 10, "36.0%"),
)
def test_rows_that_an_aggregation_counts_by_the_group_are_told_by_the_event_times(history, times, dropping, share):
    [finding] = RULE.check(in_groups(history, times, dropping))
    said = f"Spark counts groups of rows, and at least {share} of the rows came after their windows had ended"
    dropped = f"at least {2 * dropping} rows were dropped by stateStoreSave in the last minute"
    assert finding.summary == f"{dropped}; {said}"
    assert f"{told_by(finding)['after_windows_share']:.1%}" == share


@cases(
    "times, dropping, more",
    ("none is", IN_TIME, 10, {}),
    ("a few may be", FEW, 10, {}),
    ("half are, in two batches only", HALF, 2, {}),
    ("half are, and a window of a day is open for them", HALF, 10, {"window": A_DAY}),
    ("half are, and how long a window is open is not known", HALF, 10, {"window": None}),
    ("half are of those with the first of two watermarks", HALF, 10, {"marks": ("t", "u")}),
    ("they are within a window's length and what the watermark moves in a batch", (-11.9, -11.0, 5.0), 10, {}),
    ("half are, but none was dropped: their windows are open", HALF, 0, {}),
    ("half are, and the operator counts rows", HALF, 10, {"operator": "dedupe"}),
    ("all are, of few rows", ALL, 10, {"rows": 4}),
)
def test_rows_that_may_be_in_time_are_not(history, times, dropping, more):
    assert list(RULE.check(in_groups(history, times, dropping, **more))) == []


def test_of_two_sources_the_event_times_may_be_those_of_one(history):
    assert list(RULE.check(beside_another(in_groups(history, HALF, 10), 400))) == []


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
