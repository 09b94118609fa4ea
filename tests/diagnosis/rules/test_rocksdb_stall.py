import pytest

from ledgerops.diagnosis.rules.rocksdb_stall import RULE


def stalled(*milliseconds: float) -> list[dict]:
    return [{"rows": 1000, "custom": {"rocksdbWriterStallLatencyMs": each * 1_000_000}} for each in milliseconds]


def test_writers_that_stand_still_are_found(history):
    [finding] = RULE.check(history(seconds=[4] * 4, operators=stalled(0, 3000, 4000, 5000)))

    assert finding.summary == (
        "writes to the state of stateStoreSave stalled for 4.0 task seconds per batch, 50% of its 4.0 s"
    )
    assert finding.share == 0.5


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"warm": 0}, id="no batch yet"),
        pytest.param({"seconds": [4] * 4}, id="no state"),
        pytest.param({"seconds": [4] * 4, "operators": [{"rows": 1000}] * 4}, id="another state store"),
        pytest.param({"seconds": [4] * 4, "operators": stalled(0, 0, 0, 0)}, id="no stall"),
        pytest.param({"seconds": [4] * 4, "operators": stalled(4000, 4000, 0, 4000)}, id="now and then"),
        pytest.param({"seconds": [4] * 4, "operators": stalled(50, 60, 40, 50)}, id="a hundredth of the batch"),
        pytest.param(
            {"seconds": [0.5] * 4, "interval": 20.0, "operators": stalled(900, 900, 900, 900)},
            id="a second in a long interval",
        ),
        pytest.param({"warm": 0, "seconds": [4] * 2, "operators": stalled(4000, 4000)}, id="start-up"),
    ],
)
def test_others_are_not(history, case):
    assert list(RULE.check(history(**case))) == []


def test_it_is_ruled_out_with_its_number(history):
    view = history(seconds=[4] * 4, operators=stalled(0, 0, 0, 0))

    assert RULE.acquit(view) == "RocksDB stalled no write in the latest 3 batches"
    assert RULE.acquit(history(seconds=[4] * 4)) is None
