import pytest

from ledgerops.diagnosis.cause import check
from ledgerops.diagnosis.causes.rocksdb_stall import CAUSE
from tests.diagnosis.conftest import stage
from tests.tables import cases

TASKS = [stage(seconds=[3.5, 3.5], cpu=0.1)]


def stalled(history, *seconds, **more):
    """Batches of 4 s, in which writes to the state stalled for so many task seconds."""
    state = [
        {"rows": 1000, "update_seconds": 6.0, "custom": {"rocksdbWriterStallLatencyMs": each * 1e9}} for each in seconds
    ]
    told = {"seconds": [4] * len(state), "operators": state, "stages": TASKS}
    return history(**{"phases": {"add_batch": 3.8}, "cores": 2, "interval": 1.0} | told | more)


@cases("stall, said, saving", ("half of it", 4.0, "2.0 s", 2.0), ("a tenth of it, which grew", 1.2, "0.60 s", 0.6))
def test_writers_that_stand_still_are_found(history, stall, said, saving):
    [finding] = check(CAUSE, stalled(history, *[stall] * 8))
    assert finding.summary == f"writes to the state stall for {said} of a batch of 4.0 s"
    assert finding.saving_seconds == pytest.approx(saving)
    assert (finding.component.name, finding.component.detail) == ("stateStoreSave", "RocksDB")
    assert finding.remedies[0].action.startswith("see with `iostat -x` whether the disk of spark.local.dir is busy")


def writing(history, mib_by_store, settings):
    """Stores that write so much in a batch, with these settings."""
    custom = {"rocksdbWriterStallLatencyMs": 4e9, "rocksdbTotalBytesWritten": 2 * mib_by_store * 2**20}
    state = {"rows": 1000, "update_seconds": 6.0, "shuffle_partitions": 2, "custom": custom}
    return stalled(history, *[4.0] * 8, operators=state, plan={"stateful": True, "state_settings": settings})


@cases(
    "mib_by_store, settings, now, enough",
    ("set", 70, {"rocksdb.writeBufferSizeMB": "1", "rocksdb.maxWriteBufferNumber": "2"}, "1", 64),
    ("RocksDB's default", 300, {"rocksdb.writeBufferSizeMB": "-1"}, "64", 256),
)
def test_buffers_that_a_batch_overflows_are_named_with_their_number(history, mib_by_store, settings, now, enough):
    [finding] = check(CAUSE, writing(history, mib_by_store, settings))
    [step] = finding.remedies

    setting = "spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB"
    assert step.action == f"raise {setting} from {now} to {enough} at the next start"
    assert step.settings == ((setting, enough),)


@cases(
    "mib_by_store, settings",
    ("they hold it", 1, {"rocksdb.writeBufferSizeMB": "1"}),
    ("the default holds it", 70, {}),
    ("all stores share one memory", 300, {"rocksdb.boundedMemoryUsage": "true"}),
    ("the settings are not known", 300, None),
)
def test_otherwise_the_disk_comes_first(history, mib_by_store, settings):
    [finding] = check(CAUSE, writing(history, mib_by_store, settings))
    assert "iostat" in finding.remedies[0].action


@cases(
    "seconds, more",
    ("now and then", [4.0, 0.0, 0.0, 0.0] * 2, {}),
    ("a hundredth of the batch", [0.1] * 8, {}),
    ("another state store", [4.0] * 8, {"operators": {"rows": 1000}}),
)
def test_others_are_not(history, seconds, more):
    assert list(check(CAUSE, stalled(history, *seconds, **more))) == []
