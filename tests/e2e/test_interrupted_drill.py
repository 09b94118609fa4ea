"""A drill that is ended leaves nothing behind that runs: a machine full of busy orphans would spoil the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

pytestmark = [pytest.mark.spark]
SOON = 180.0  # seconds, on a machine that is busy with other tests


def wait(holds, what):
    limit = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < limit, what
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGTERM, 130, id="terminated"), pytest.param(signal.SIGKILL, -9, id="killed")],
)
def test_an_ended_drill_takes_its_driver_with_it(tmp_path, number, code):
    command = [sys.executable, "-m", "ledgerops", "drill", "crash", "--out", str(tmp_path)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        wait((tmp_path / "crash" / "ready.json").exists, "the driver did not start")
        family = psutil.Process(process.pid).children(recursive=True)
        assert any("java" in each.name() for each in family)
        os.kill(process.pid, number)

        assert process.wait(SOON) == code
        wait(lambda: not any(each.is_running() for each in family), f"left behind: {family}")
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
