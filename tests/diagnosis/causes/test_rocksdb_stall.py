import pytest

from ledgerops.diagnosis.cause import check, ruled_out
from ledgerops.diagnosis.causes.rocksdb_stall import CAUSE
from tests.diagnosis.conftest import stage

TASKS = [stage(seconds=[3.5, 3.5], cpu=0.1)]


def stalled(history, *seconds, **more):
    """Batches of 4 s, in which writes to the state stalled for so many task seconds."""
    state = [
        {"rows": 1000, "update_seconds": 6.0, "custom": {"rocksdbWriterStallLatencyMs": each * 1e9}} for each in seconds
    ]
    told = {"seconds": [4] * len(state), "operators": state, "stages": [TASKS] * len(state)}
    return history(**{"phases": [{"add_batch": 3.8}] * len(state), "cores": 2, "interval": 1.0} | told | more)


def test_writers_that_stand_still_are_found(history):
    [finding] = check(CAUSE, stalled(history, *[4.0] * 8))

    assert finding.summary == "writes to the state stall for 2.0 s of a batch of 4.0 s"
    assert (finding.component.name, finding.component.detail) == ("stateStoreSave", "RocksDB")
    assert finding.remedies[0].action.startswith("check the disk of spark.local.dir")


def test_a_tenth_of_a_batch_is_worth_a_word_where_it_grew(history):
    [finding] = check(CAUSE, stalled(history, *[1.2] * 8))

    assert finding.saving_seconds == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("seconds", "more"),
    [
        pytest.param([0.0] * 8, {}, id="no stall"),
        pytest.param([4.0, 0.0, 0.0, 0.0] * 2, {}, id="now and then"),
        pytest.param([0.1] * 8, {}, id="a hundredth of the batch"),
        pytest.param([4.0] * 8, {"stages": None}, id="tasks unknown"),
        pytest.param([4.0] * 8, {"interval": 10.0}, id="the query has the time"),
        pytest.param([4.0] * 8, {"operators": [{"rows": 1000}] * 8}, id="another state store"),
    ],
)
def test_others_are_not(history, seconds, more):
    assert list(check(CAUSE, stalled(history, *seconds, **more))) == []


def test_it_is_ruled_out_by_what_it_takes(history):
    assert ruled_out(CAUSE, stalled(history, *[0.0] * 8)) == "0 s of 4.0 s (0%)"
