"""A drill that is ended leaves nothing behind that runs: a machine full of busy orphans would spoil the next one."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import psutil
import pytest

from tests.programs import until
from tests.tables import cases

pytestmark = pytest.mark.spark
SOON = 180.0  # seconds, on a machine that is busy with other tests


@cases("number, code", ("terminated", signal.SIGTERM, 130), ("killed", signal.SIGKILL, -9))
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
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
