from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.rules.long_batches import RULE
from tests.tables import cases

COMPUTES = {"query_planning": 0.2, "add_batch": 2.2}


def test_batches_without_a_pause_and_without_a_cause_are_told_with_their_largest_part(history):
    view = history(warm=0, seconds=[2.4] * 12, interval=0.0, phases=COMPUTES, cores=None)
    verdict = Diagnoser()(view)
    [root] = verdict.root_causes

    assert (verdict.status, root.rule, root.severity) == ("healthy", "long-batches", "info")
    assert root.summary == (
        "batches run back to back and take 2.4 s; the largest part of a batch is stages whose tasks were not read: "
        "2.2 s of 2.4 s"
    )


@cases("seconds, told", ("three become long", [2.0] * 9 + [5.0] * 3, 5.0), ("two do", [2.0] * 10 + [5.0] * 2, 2.0))
def test_they_take_as_long_as_the_batch_whose_parts_are_told(history, seconds, told):
    [root] = Diagnoser()(history(warm=0, seconds=seconds, interval=0.0, cores=None)).root_causes
    assert f"batches run back to back and take {told:.1f} s; the largest part" in root.summary
    assert root.summary.endswith(f" of {told:.1f} s")
    assert root.batches


@cases("more", ("it runs", {"running": 30.0}), ("the run ended in it", {"running": 30.0, "stopped": True}))
def test_one_long_batch_is_worth_a_word_when_the_next_takes_as_long(history, more):
    [finding] = RULE.check(history(warm=0, seconds=[48.0], interval=0.0, **more))
    assert finding.summary == "a batch took 48 s"


def test_batches_with_pauses_are_not_said_to_run_back_to_back(history):
    slower = {"warm": 0, "interval": 15.0, "seconds": [2.0] * 8 + [6.0] * 3}
    [finding] = RULE.check(history(**slower, plan={"trigger": None, "trigger_interval": None}))
    assert finding.summary == "batches take 6.0 s"
    assert list(RULE.check(history(**slower))) == []


@cases(
    "case",
    ("a slow first batch", {"seconds": [48.0], "interval": 0.0}),
    ("a second one that has only begun", {"seconds": [48.0], "interval": 0.0, "running": 5.0}),
    ("a long first batch and a quick second one", {"seconds": [48.0, 2.0], "interval": 0.0}),
    ("batches are short", {"seconds": [0.8] * 12, "interval": 0.0}),
    ("batches pause", {"seconds": [2.4] * 12, "interval": 10.0}),
    ("they keep a narrow interval", {"seconds": [2.4] * 12, "interval": 2.5}),
    ("nothing to read", {"seconds": [2.4] * 12, "interval": 0.0, "idle": True}),
    ("it ends by itself", {"seconds": [2.4] * 12, "interval": 0.0, "plan": {"trigger": "available_now"}}),
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(warm=0, **case))) == []
