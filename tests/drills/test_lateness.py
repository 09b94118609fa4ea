"""How long rows wait is judged by the files of a checkpoint and by the load plan, and by nothing that is diagnosed."""

import json
import os

import pytest

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.effects import rows_wait

ORIGIN = 1_790_000_000.0
PLAN = "seed: 1\nphases: [{shape: constant, rate: 10}]\n"


def bundle(folder, read, injected=0.0):
    """A query that plans a batch every 2 s, by when it has read so many rows in all."""
    offsets = folder / "checkpoints" / "main" / "offsets"
    offsets.mkdir(parents=True)
    for number, rows in enumerate(read):
        file = offsets / str(number)
        ends = {"transactions": {"0": rows - rows // 2, "1": rows // 2}}
        file.write_text(f"v1\n{{}}\n{json.dumps(ends)}\n")
        at = ORIGIN + 2.0 * (number + 1)
        os.utime(file, (at, at))
    times = {"origin": ORIGIN, "injected": ORIGIN + injected, "ended": ORIGIN + 2.0 * (len(read) + 1)}
    (folder / "times.json").write_text(json.dumps(times))
    return Bundle(folder)


def test_the_instant_at_which_a_row_has_waited_so_long_is_found(tmp_path):
    found = rows_wait(5.0, PLAN)(bundle(tmp_path, [20, 40, 50, 60, 70, 80, 90, 100]))
    assert found == pytest.approx(ORIGIN + 12.0)  # 70 are read at 10 s, the 71st came at 7.1 s


def test_what_was_so_before_the_fault_does_not_count(tmp_path):
    found = rows_wait(5.0, PLAN)(bundle(tmp_path, [20, 40, 50, 60, 70, 80, 90, 100], injected=13.0))
    assert found is not None and found >= ORIGIN + 13.0


def test_a_query_that_keeps_up_lets_no_row_wait(tmp_path):
    assert rows_wait(5.0, PLAN)(bundle(tmp_path, [20, 40, 60, 80, 100])) is None
