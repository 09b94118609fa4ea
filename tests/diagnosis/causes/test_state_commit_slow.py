from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.state_commit_slow import CAUSE
from tests.diagnosis.conftest import stage
from tests.tables import cases

TASKS = [stage(seconds=[4.4, 4.4], cpu=0.1)]


def saving(history, commit, warm=0, **more):
    state = {"rows": 1000, "commit_seconds": commit} | more.pop("state", {})
    told = {"seconds": [5] * 8, "stages": TASKS, "operators": state, "phases": {"add_batch": 4.6}}
    return history(**{"warm": warm, "warm_stages": [stage(seconds=[0.5, 0.5])], "cores": 2} | told | more)


@cases(
    "custom, changelog", ("on the heap", {}, False), ("RocksDB, to save changes only", {"rocksdbPutCount": 7.0}, True)
)
def test_saving_the_state_is_told_in_wall_time(history, custom, changelog):
    """On two cores at once."""
    [finding] = check(CAUSE, saving(history, 7.6, state={"custom": custom}))
    assert finding.summary == "saving the state takes 3.8 s of a batch of 5.0 s"
    assert finding.component.name == "stateStoreSave"
    assert finding.remedies[0].action == "time the writing of a small file to the checkpoint folder"
    assert any("changelogCheckpointing" in step.action for step in finding.remedies) is changelog


@cases(
    "commit, more",
    ("a smaller part", 2.0, {}),
    ("no state", 0.0, {"operators": None}),
    ("everything waits for the collector", 7.6, {"stages": [stage(seconds=[4.4, 4.4], gc=0.8)]}),
)
def test_others_are_not(history, commit, more):
    assert list(check(CAUSE, saving(history, commit, **more))) == []
