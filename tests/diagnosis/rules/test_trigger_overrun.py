import pytest

from ledgerops.diagnosis.rules.trigger_overrun import RULE
from tests.diagnosis.conftest import told_by
from tests.tables import cases

GROWING = [10_000 * left for left in range(1, 21)]


@cases(
    "case, count, median, owed, advised",
    ("all", {"seconds": [4] * 20}, 20, "4.0", 0.5, True),
    ("and leave more", {"seconds": [4] * 20, "backlog": GROWING}, 20, "4.0", 0.5, True),
    ("a few long ones in a row, and the one that runs", {"seconds": [18, 22], "running": 24}, 3, "22", 0.9, False),
    ("late before, too", {"warm_seconds": 3.0, "seconds": [40.0, 12.0]}, 7, "3.0", 0.8, True),
    ("in time before", {"seconds": [40.0, 12.0]}, 2, "26", 0.9, False),
)
def test_batches_that_outlast_the_interval_are_found(history, case, count, median, owed, advised):
    """A longer interval is advised where usual batches need it."""
    [finding] = RULE.check(history(**case))
    late = f"{count} of the last {count} batches outlast the interval of 2 s"
    assert finding.summary == f"{late}; their median is {median} s"
    assert told_by(finding)["owed_share"] == pytest.approx(owed, abs=0.05)
    assert any(each.action.startswith("set the trigger interval to ") for each in finding.remedies) is advised


@cases(
    "case",
    ("it has ended", {"seconds": [52]}),
    ("it still runs", {"seconds": [1], "running": 52}),
    ("it runs after the first of the run", {"seconds": [12], "running": 52, "warm": 0}),
)
def test_one_batch_ten_times_as_long_as_its_interval_is_enough(history, case):
    [finding] = RULE.check(history(**case))
    assert finding.summary == "a batch outlasts the interval of 2 s; it has taken 52 s"


@cases(
    "case",
    ("one that is not so long yet", {"seconds": [1], "running": 38}),
    ("one of eight intervals", {"seconds": [16], "interval": 2.0}),
    ("the first of a run, whatever it takes", {"seconds": [90], "warm": 0}),
    ("the first of a run, which still runs", {"seconds": [], "running": 90, "warm": 0}),
    ("a backlog is worked off", {"seconds": [4] * 20, "backlog": GROWING[::-1]}),
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
