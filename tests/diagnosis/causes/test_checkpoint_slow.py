from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.checkpoint_slow import CAUSE
from ledgerops.diagnosis.engine import Diagnoser
from tests.tables import cases

SLOW = {"add_batch": 0.8, "wal_commit": 1.6, "commit_offsets": 1.5}


def test_writing_offsets_before_and_after_a_batch_is_told_together_and_is_the_root(history):
    [root] = Diagnoser()(history(warm=0, seconds=[4] * 20, phases=SLOW)).root_causes

    assert (root.rule, root.explains) == ("checkpoint-slow", ("trigger-overrun",))
    assert root.summary == "3.1 s of a batch of 4.0 s pass writing the checkpoint"
    assert (root.component.kind, root.component.detail) == ("query", "checkpoint")
    assert root.remedies[0].action.startswith("check the storage of the checkpoint")


@cases(
    "phases",
    ("the sink is slow", {"add_batch": 3.6, "wal_commit": 0.1, "commit_offsets": 0.1}),
    ("the source is slow", {"add_batch": 0.3, "latest_offset": 3.2}),
    ("a smaller part", {"add_batch": 3.0, "wal_commit": 0.3, "commit_offsets": 0.3}),
)
def test_others_are_not(history, phases):
    view = history(warm=0, seconds=[4] * 10, phases=phases)
    assert list(check(CAUSE, view)) == []
