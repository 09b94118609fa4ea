"""A drill that is ended leaves nothing behind that runs: a machine full of busy orphans would spoil the next one."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.programs import until

pytestmark = [pytest.mark.spark]
SOON = 180.0  # seconds, on a machine that is busy with other tests


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGTERM, 130, id="terminated"), pytest.param(signal.SIGKILL, -9, id="killed")],
)
def test_an_ended_drill_takes_its_driver_with_it(tmp_path, number, code):
    command = [sys.executable, "-m", "ledgerops", "drill", "crash", "--out", str(tmp_path)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        until((tmp_path / "crash" / "ready.json").exists, SOON, "the start of the driver")
        family = psutil.Process(process.pid).children(recursive=True)
        assert any("java" in each.name() for each in family)
        os.kill(process.pid, number)

        assert process.wait(SOON) == code
        until(lambda: not any(each.is_running() for each in family), SOON, f"the end of {family}")
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
