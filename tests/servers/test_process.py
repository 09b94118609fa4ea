import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from ledgerops.servers.process import PORTS, Process, answers, free_port
from tests.paths import ROOT
from tests.programs import until
from tests.refusals import refusal_of

NAP = "import time; time.sleep(600)"


@pytest.fixture
def python(tmp_path):
    return lambda code: Process("Snake", [sys.executable, "-c", code], tmp_path / "log")


def test_children_are_killed_too(python):
    process = python(f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{NAP}'])")
    process.wait_until(lambda: psutil.Process(process.pid).children(), 60)
    process.kill()
    assert not process.alive
    assert living_members(process.pid) == []


OWNER = """
import sys
from pathlib import Path
from ledgerops.servers.process import Process

nap = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
server = Process("Snake", [sys.executable, "-c", nap], Path(sys.argv[1]))
print(server.pid, flush=True)
{}
"""


@pytest.mark.parametrize("end", ["import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "sys.exit()"])
def test_a_process_ends_with_the_one_that_started_it_however_that_ends(tmp_path, end):
    command = [sys.executable, "-c", OWNER.format(end), str(tmp_path / "log")]
    owner = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    server = int(owner.stdout)

    try:
        until(lambda: not living_members(server), 60, "the end of the server and its child")
    finally:
        if living_members(server):
            os.killpg(server, signal.SIGKILL)


def living_members(group):
    """Processes of the group that have not ended."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_a_process_that_was_ended_leaves_no_guard(python):
    before = {child.pid for child in psutil.Process().children()}
    process = python(NAP)
    process.kill()
    process.kill()
    assert {child.pid for child in psutil.Process().children()} <= before


def test_a_process_that_does_not_listen_is_killed_in_the_end(python, tmp_path):
    process = python(f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); {NAP}")
    process.wait_until(lambda: "up" in (tmp_path / "log").read_text(), 60)
    began = time.monotonic()
    process.stop(seconds=0.2)

    assert not process.alive
    assert time.monotonic() - began < 25  # it would have been waited for for 30 s


def test_a_process_that_ends_at_its_start_is_quoted(python, tmp_path):
    process = python("print('x'); print('FATAL no luck'); print('bye'); raise SystemExit(1)")
    told = refusal_of(process.wait_until, lambda: False, 60)
    assert told == f"Snake stopped while starting: FATAL no luck (see {tmp_path / 'log'})"


def test_a_process_that_never_gets_ready_is_ended(python, tmp_path):
    process = python(NAP)
    told = refusal_of(process.wait_until, lambda: False, 0.2)
    assert told == f"Snake was not ready after 0 s: it printed nothing (see {tmp_path / 'log'})"
    assert not process.alive


def test_a_free_port_is_given_once_and_is_one_that_outgoing_connections_do_not_take():
    ports = {free_port() for _ in range(500)}
    assert len(ports) == 500 and ports <= {*PORTS}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", free_port()))


def test_a_server_answers_only_with_200(receiver):
    receiver.pages["/ready"] = "yes"
    assert answers(f"{receiver.url}/ready")
    assert not answers(f"{receiver.url}/absent")
    assert not answers(f"http://127.0.0.1:{free_port()}/ready")
