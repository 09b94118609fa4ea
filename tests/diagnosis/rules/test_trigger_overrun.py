import pytest

from ledgerops.diagnosis.rules.trigger_overrun import RULE


def test_batches_that_outlast_the_interval_are_found(history):
    [finding] = RULE.check(history(seconds=[4] * 10))

    assert finding.summary == (
        "10 of the last 10 batches outlast the interval of 2 s; the median is 4.0 s, most of it add_batch"
    )


def test_a_few_long_ones_in_a_row_are_enough(history):
    [finding] = RULE.check(history(seconds=[8, 16], running=18))

    assert finding.summary == (
        "3 of the last 3 batches outlast the interval of 2 s; the median is 16.0 s, most of it add_batch"
    )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [2.4] * 12}, id="a little over: only a tick is missed"),
        pytest.param({"seconds": [1, 1, 4, 1, 1] * 3}, id="one in five is long"),
        pytest.param({"seconds": [9, 9]}, id="two long ones"),
        pytest.param({"seconds": [9, 1]}, id="over and done"),
        pytest.param({"seconds": [4] * 12, "interval": 0.0}, id="back to back by intent"),
        pytest.param({"seconds": [4] * 12, "interval": None}, id="interval unknown"),
        pytest.param({"seconds": [40] * 12, "interval": 60.0}, id="long batches in a longer interval"),
        pytest.param({"seconds": [0.8] * 12, "interval": 0.5}, id="nobody waits for a fraction of a second"),
        pytest.param({"seconds": [9, 6, 4, 2], "warm": 0}, id="the start of a run"),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []
