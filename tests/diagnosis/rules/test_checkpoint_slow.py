import pytest

from ledgerops.diagnosis.rules.checkpoint_slow import RULE
from tests.diagnosis.rules.crowd import looked_at

SLOW = {"add_batch": 0.8, "wal_commit": 1.6, "commit_offsets": 1.5}
USUAL = {"add_batch": 0.8, "wal_commit": 0.05, "commit_offsets": 0.05}


def view(history, seconds=4, told=SLOW, **more):
    return history(warm=0, seconds=[1] * 14 + [seconds] * 4, phases=[USUAL] * 14 + [told] * 4, **more)


def test_a_checkpoint_that_became_slow_is_compared_with_its_past(history):
    [finding] = RULE.check(view(history))

    assert finding.summary == "3.1 s of a batch of 4.0 s are spent writing the checkpoint; the usual is 0.1 s"
    assert finding.share == pytest.approx(0.75)


def test_one_that_was_always_slow_is_told_without_a_past(history):
    [finding] = RULE.check(history(warm=0, seconds=[4] * 10, phases=[SLOW] * 10))

    assert finding.summary == "3.1 s of a batch of 4.0 s are spent writing the checkpoint"


def test_what_is_valid_without_state_is_not_told_to_a_stateful_query(history):
    [stateful] = RULE.check(view(history, plan={"stateful": True}))
    [stateless] = RULE.check(view(history))

    assert not any("asyncProgressTracking" in remedy.action for remedy in stateful.remedies)
    assert any("asyncProgressTracking" in remedy.action for remedy in stateless.remedies)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"seconds": 1.9}, id="no harm"),
        pytest.param({"told": {"add_batch": 3.6, "wal_commit": 0.1, "commit_offsets": 0.1}}, id="the sink is slow"),
        pytest.param({"told": {"add_batch": 0.3, "latest_offset": 3.2}}, id="the source is slow"),
        pytest.param({"told": {"add_batch": 3.0, "wal_commit": 0.3, "commit_offsets": 0.3}}, id="a smaller part"),
        pytest.param(
            {"told": {"add_batch": 0.8, "wal_commit": 0.4, "commit_offsets": 0.4}, "seconds": 2.7},
            id="less than a second",
        ),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(view(history, **case))) == []


@pytest.mark.parametrize(
    "seconds",
    [pytest.param([], id="no batch yet"), pytest.param([4, 1, 1, 1], id="one slow write")],
)
def test_a_little_is_not_enough(history, seconds):
    assert list(RULE.check(history(seconds=seconds, phases=[SLOW] * len(seconds)))) == []


@pytest.mark.parametrize(("gc", "found"), [pytest.param(0.05, 1, id="hardly any"), pytest.param(0.4, 0, id="much")])
def test_a_driver_that_collects_garbage_makes_everything_slow(history, gc, found):
    assert len(list(RULE.check(looked_at(view(history), gc=gc)))) == found


def test_it_is_ruled_out_with_its_number(history):
    told = RULE.acquit(view(history, told={"add_batch": 3.6, "wal_commit": 0.1, "commit_offsets": 0.1}))

    assert told == "writing the checkpoint takes 0.2 s of a batch of 4.0 s"
