"""The processes of the drill cpu-saturated use a core each until they are ended."""

import subprocess
import sys
import time

import psutil

from ledgerops.drills.scenarios.resources import BUSY, kill_all


def test_a_busy_process_computes_until_it_is_ended():
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        limit = time.monotonic() + 60.0
        while psutil.Process(process.pid).cpu_times().user < 0.5:
            assert process.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.05)
    finally:
        kill_all([process])

    assert process.returncode == -9
