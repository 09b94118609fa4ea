import pytest

from ledgerops.diagnosis.rules.trigger_overrun import RULE
from tests.tables import cases


def test_batches_that_outlast_the_interval_are_found(history):
    [finding] = RULE.check(history(seconds=[4] * 20))
    assert finding.summary == "20 of the last 20 batches outlast the interval of 2 s; their median is 4.0 s"
    assert finding.remedies[1].action == "set the trigger interval to 6 s or more, if results may be that old"
    assert {each.name: each.value for each in finding.evidence}["owed_share"] == pytest.approx(0.5)


def test_a_few_long_ones_in_a_row_are_enough_and_the_one_that_runs_counts(history):
    [finding] = RULE.check(history(seconds=[18, 22], running=24))
    assert finding.summary == "3 of the last 3 batches outlast the interval of 2 s; their median is 22 s"


@pytest.mark.parametrize(("usual", "advised"), [(1.0, False), (3.0, True)], ids=["in time", "late, too"])
def test_a_longer_interval_is_advised_where_usual_batches_need_it(history, usual, advised):
    [finding] = RULE.check(history(warm_seconds=usual, seconds=[40.0, 12.0]))
    assert any(each.action.startswith("set the trigger interval") for each in finding.remedies) is advised


def test_a_batch_that_works_off_a_backlog_is_not_late(history):
    falling = [10_000 * left for left in range(20, 0, -1)]
    assert list(RULE.check(history(seconds=[4] * 20, backlog=falling))) == []
    [finding] = RULE.check(history(seconds=[4] * 20, backlog=falling[::-1]))
    assert finding.summary.startswith("20 of the last 20 batches")


@cases(
    "case",
    ("a little over: a sixth of the time is owed", {"seconds": [2.4] * 40}),
    ("a burst may be over within the minute", {"seconds": [4] * 14}),
    ("one in five is long", {"seconds": [1, 1, 4, 1, 1] * 3}),
    ("two long ones", {"seconds": [9, 9]}),
    ("over and done", {"seconds": [9, 1]}),
    ("back to back by intent", {"seconds": [4] * 12, "interval": 0.0}),
    ("interval unknown", {"seconds": [4] * 12, "interval": None}),
    ("long batches in a longer interval", {"seconds": [40] * 12, "interval": 60.0}),
    ("a tenth over", {"seconds": [0.55] * 200, "interval": 0.5}),
    ("the start of a run", {"seconds": [9, 6, 4, 2], "warm": 0}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []
