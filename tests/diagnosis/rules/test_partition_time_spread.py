from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.partition_time_spread import RULE
from tests.tables import cases

DELAY = {"watermarks": {"event_time": 10.0}}
DROPS = {"dropped_rows": 50}
BEHIND = [[0, 500 * n] for n in range(20)]  # the second partition is not read at all
FEW = {"read": [[50, 0]] * 20, "backlog": [[0, 50 * n] for n in range(20)], "operators": {"dropped_rows": 2}}
YOUNG = {"seconds": [1.0] * 5, "read": [[500, 0]] * 5, "backlog": BEHIND[:5], "plan": {}}


def apart(**changes):
    """Two partitions of which each gets 500 rows a batch; only the first is read."""
    case = {"seconds": [1.0] * 20, "read": [[500, 0]] * 20, "backlog": BEHIND, "operators": DROPS, "plan": DELAY}
    return case | changes


def test_a_partition_that_is_read_behind_another_explains_the_late_rows(history):
    roots = Diagnoser()(history(**apart())).root_causes
    [root] = [root for root in roots if root.rule == "partition-time-spread"]

    assert root.summary == (
        "partition 1 of transactions is read 38 s behind the most advanced of 2 (allowed lateness 10 s), and 1,000 "
        "rows were dropped as late in the last minute"
    )
    assert root.remedies[1].action == "allow more lateness with withWatermark, at least 48 s"
    assert root.explains == ("rows-dropped", "late-data") and "late-data" not in {each.rule for each in roots}


@cases(
    "case",
    ("apart, but nothing is dropped", apart(operators=None)),
    ("stragglers", apart(operators={"dropped_rows": 1})),
    ("stragglers of few rows", apart(**FEW)),
    ("apart by a few batches", apart(**YOUNG)),
    ("late rows, but partitions are level", apart(backlog=[[0, 0]] * 20, read=[[500, 500]] * 20)),
    ("one partition", apart(backlog=[500 * n for n in range(20)], read=[[1000]] * 20)),
    ("apart by less than the allowed lateness", apart(plan={"watermarks": {"event_time": 60.0}})),
    ("a trigger", apart(interval=20.0, seconds=[1.0] * 2, read=[[500, 0]] * 2, backlog=BEHIND[:2])),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []
