"""Effects are judged by the files of a checkpoint, the load plan and the application's log, and by nothing that is
diagnosed."""

import json

import pytest

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.effects import batches_outlast, fails, rows_wait
from tests.drills.checkpoints import T0, checkpoint
from tests.tables import cases

PLAN = "seed: 1\nphases: [{shape: constant, rate: 10}]\n"


def bundle(folder, ended, injected=0.0):
    times = {"origin": T0, "injected": T0 + injected, "ended": T0 + ended}
    (folder / "times.json").write_text(json.dumps(times))
    return Bundle(folder)


@pytest.mark.parametrize(("lines", "times", "expected"), [((3.0, 9.0), 2, 9.0), ((3.0,), 2, None), ((), 1, None)])
def test_a_failure_takes_effect_when_the_application_notes_it(tmp_path, lines, times, expected):
    log = "".join(json.dumps({"at": at, "error": "disk quota exceeded"}) + "\n" for at in lines)
    (tmp_path / "failures.jsonl").write_text(log)
    assert fails(times)(Bundle(tmp_path)) == expected


@pytest.mark.parametrize(
    ("seconds", "times", "expected"), [(2.0, 1, T0 + 6), (8.0, 1, None), (2.0, 2, T0 + 6), (2.0, 3, None)]
)
def test_so_many_batches_in_a_row_outlast_a_time(tmp_path, seconds, times, expected):
    checkpoint(tmp_path / "checkpoints" / "main", planned=(0, 2, 4, 9), done=(1, 3, 9, 15))
    assert batches_outlast(seconds, times)(bundle(tmp_path, ended=60, injected=3)) == expected


@cases(
    "read, injected, expected",
    # 70 are read at 10 s, the 71st came at 7.1 s
    ("the instant at which it has waited so long", [20, 40, 50, 60, 70, 80, 90, 100], 0, T0 + 12.0),
    ("what was so before the fault", [20, 40, 50, 60, 70, 80, 90, 100], 13, T0 + 13.0),
    ("a query that keeps up", [20, 40, 60, 80, 100], 0, None),
)
def test_a_row_waits_for_so_long_from_the_fault_on(tmp_path, read, injected, expected):
    planned = [2.0 * number for number in range(1, len(read) + 1)]
    checkpoint(tmp_path / "checkpoints" / "main", planned, read=read)
    found = rows_wait(5.0, PLAN)(bundle(tmp_path, ended=planned[-1] + 2.0, injected=injected))
    assert found == (expected if expected is None else pytest.approx(expected))
