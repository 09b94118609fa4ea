"""CPU seconds of a run, by process."""

import subprocess
import sys

import psutil
import pytest

from load.bench.usage import Meter

SECONDS = 0.3  # of a worker of PARENT
TOLERANCE = 0.1  # the system counts CPU time in steps of 10 ms, and a worker has to start


PARENT = """
import subprocess, sys
burn = "import time\\nwhile time.process_time() < 0.3: pass\\nprint(flush=True)\\ninput()"
for line in sys.stdin:
    child = subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    print(flush=True)
    sys.stdin.readline()
    child.communicate("\\n")
    print(flush=True)
"""


@pytest.fixture
def parent():
    """Stands for a JVM: of two lines one starts a worker that burns SECONDS, one ends it."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def java(parent):
    return psutil.Process(parent.pid)  # named: this process may have a real JVM, of a test before


def step(parent):
    parent.stdin.write("\n")
    parent.stdin.flush()
    parent.stdout.readline()


def test_a_worker_counts_alike_whether_it_has_ended_or_not(parent, java):
    meter = Meter(java)
    step(parent)
    running = meter.used().workers
    step(parent)

    assert running == pytest.approx(SECONDS, abs=TOLERANCE)
    assert meter.used().workers == pytest.approx(SECONDS, abs=TOLERANCE)


def test_what_a_worker_used_before_is_not_counted_when_it_ends(parent, java):
    step(parent)
    meter = Meter(java)
    step(parent)
    assert meter.used().workers == pytest.approx(0.0, abs=TOLERANCE)
