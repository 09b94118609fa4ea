"""A fork of the driver does not disturb it: no wrong answer of its JVM, no lost event, no port that is kept."""

import json
import os
import socket
from contextlib import closing

import pytest

import ledgerops
from ledgerops.agent.attach import SessionWatch
from ledgerops.agent.recording_writer import RecordingWriter
from ledgerops.model.recording import Recorder
from tests.agent.fakes import RemoteSession
from tests.programs import python

QUESTIONS = 20_000  # asked of the JVM beside the forks; without the hook some of them get the answer to another


@pytest.mark.e2e
def test_a_driver_that_forks_in_every_way_gets_no_wrong_answer_and_stays_watched():
    done = python("-m", "tests.agent.forks", str(QUESTIONS), "watched", timeout=560)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])

    assert found["asked"] >= QUESTIONS
    assert (found["bad"], found["squares"]) == ([], 2 * sum(n * n for n in range(20)))
    assert sorted(set(found["codes"])) == [0, 1]  # exit and exception
    assert found["heard"] and found["batches"]


def in_a_child(look):
    """What `look` returns in a forked child, as JSON."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(look()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


@pytest.fixture
def watch(tmp_path):
    session = RemoteSession()
    session.conf = {"spark.app.name": "forked"}
    with closing(ledgerops.attach(session, port=0, tasks_collector=False, recording=str(tmp_path))) as made:
        assert isinstance(made, SessionWatch)
        yield made


def test_in_the_child_the_watch_is_inert_and_closing_it_touches_no_session(watch):
    listeners = watch._session.spark.listeners

    def look():
        watch.close()
        return [watch.url, watch.diagnose()["queries"], watch.error, len(listeners)]

    assert in_a_child(look) == [None, [], "this process was forked from the observed one", 1]
    assert watch.url is not None


def test_the_child_keeps_no_socket_of_the_exporter(watch):
    descriptor = watch._hub.exporter._server.socket.fileno()

    def is_open():
        try:
            return bool(os.fstat(descriptor))
        except OSError:
            return False

    assert in_a_child(is_open) is False
    with socket.create_connection(("127.0.0.1", watch.port), timeout=10):
        pass


def test_what_waits_to_be_recorded_is_written_once(watch, tmp_path):
    writer = RecordingWriter(Recorder(tmp_path / "own"), watch._hub.stats, print)
    served, watch._hub.worker._writer = watch._hub.worker._writer, writer
    writer.add(b'{"at": "2026-01-31T12:00:00.000Z", "kind": "idle", "query": "mine", "data": {}}\n')

    assert in_a_child(lambda: writer.stop(5.0)) is None
    watch._hub.worker._writer = served
    writer.stop(5.0)
    text = b"".join(file.read_bytes() for file in (tmp_path / "own").iterdir())
    assert text.count(b'"mine"') == 1
