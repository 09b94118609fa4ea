import time

import pyarrow as pa
import pytest

from ledgerops.drills.applications import outside
from ledgerops.drills.harness.fault_control import FaultControl
from ledgerops.drills.scenarios.batch_cost import each_row

BATCH = pa.record_batch({"n": [1, 2, 3, 4, 5]})
MANY = pa.record_batch({"n": range(100_000)})


@pytest.fixture(autouse=True)
def control(tmp_path, monkeypatch):
    """What the outside is told to do."""
    monkeypatch.setenv("OUTSIDE", str(tmp_path / "outside.json"))
    monkeypatch.setattr(outside, "_known", {"at": 0.0, "values": {}})
    return FaultControl(tmp_path / "outside.json")


def test_rows_are_handed_on_as_they_are_and_at_once_while_nothing_is_asked():
    began = time.monotonic()

    assert list(each_row([MANY, MANY])) == [MANY, MANY]
    assert time.monotonic() - began < 20  # a millisecond for each row takes minutes


def test_each_row_costs_what_the_control_file_says(control):
    control.set(row=0.02)
    began = time.monotonic()

    assert list(each_row([BATCH])) == [BATCH]
    assert time.monotonic() - began >= 0.1
