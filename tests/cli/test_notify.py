"""`ledgerops notify` as a command: its options reach the parts that they are for."""

import json
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from ledgerops.notify.spool import Spool
from ledgerops.servers.process import answers, free_port
from tests.notify.build import DIAGNOSIS, webhook
from tests.notify.receiver import Receiver
from tests.programs import until
from tests.serving import Background, Quiet


@pytest.fixture
def driver():
    """A driver on an address that is not trusted by itself."""
    made = Receiver("127.0.0.2")
    made.pages["/diagnosis"] = {"version": 1, "queries": [DIAGNOSIS]}
    made.pages["/api/v1/query"] = {"data": {"result": [{"metric": {"instance": made.url.removeprefix("http://")}}]}}
    yield made
    made.close()


@pytest.mark.parametrize(
    ("more", "sent"), [([], ""), (["--token-host", "127.0.0.*"], "Bearer s3cret")], ids=["unnamed host", "named host"]
)
def test_a_test_alert_is_sent_with_its_cause_and_the_token_goes_to_named_hosts(
    receiver, driver, tmp_path, ledgerops, more, sent
):
    (tmp_path / "token").write_text("s3cret\n")
    options = ["--prometheus", driver.url, "--exporter-token-file", tmp_path / "token", *more]
    told = ledgerops("notify", "--send", receiver.url, *options, "--test", "daily_counts")

    assert (told.code, "sent: webhook 127.0.0.1 1" in told.out) == (0, True)
    assert "cause: key-skew" in receiver.got[0]["body"]
    assert driver.authorization == ["", sent]


@pytest.mark.parametrize("causes", [7, "none", [None], [{}], [{**DIAGNOSIS["root_causes"][0], "confidence": "x"}]])
def test_a_test_alert_is_sent_without_a_diagnosis_that_is_none(receiver, driver, ledgerops, causes):
    driver.pages["/diagnosis"] = {"version": 1, "queries": [{**DIAGNOSIS, "root_causes": causes}]}
    told = ledgerops("notify", "--send", receiver.url, "--exporter", driver.url, "--test", DIAGNOSIS["query"])
    assert (told.code, told.err) == (0, "")
    assert "diagnosis: none (the driver returned an invalid diagnosis)" in receiver.got[0]["body"]


def test_without_a_sender_one_line_says_what_to_give(refusal):
    assert refusal("notify") == (
        "no sender configured; give --send URL, --senders FILE or the variable LEDGEROPS_NOTIFY_SENDERS"
    )


@contextmanager
def running(*options, **streams):
    """A `ledgerops notify` in a process of its own, once it answers, and its URL."""
    port = free_port()
    command = [sys.executable, "-m", "ledgerops", "notify", "--port", str(port), *map(str, options)]
    service = subprocess.Popen(command, **streams)
    try:
        until(lambda: answers(f"http://127.0.0.1:{port}/healthz"), 60, "the service")
        yield service, f"http://127.0.0.1:{port}"
    finally:
        service.terminate()
        service.wait(60)


def test_the_service_goes_on_when_its_output_cannot_be_written(receiver, tmp_path):
    with (
        Path("/dev/full").open("w") as full,
        running("--send", receiver.url, "--queue", tmp_path / "queue.db", stdout=full) as (service, _),
    ):
        pass

    assert service.returncode == 0


class Holding(Quiet):
    """Keeps a message until it may go on."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.came.release()
        self.server.go_on.wait(60)
        self.reply()


def test_a_delivery_under_way_is_finished_and_noted_before_the_service_ends(tmp_path):
    queue = tmp_path / "queue.db"
    with Background(Holding) as receiver:
        receiver.came, receiver.go_on = threading.Semaphore(0), threading.Event()
        with running("--send", receiver.url, "--queue", queue) as (service, url):
            urllib.request.urlopen(f"{url}/alerts", json.dumps(webhook()).encode(), timeout=60).close()
            assert receiver.came.acquire(timeout=60)
            service.terminate()
            until(lambda: not answers(f"{url}/healthz"), 60, "the end of listening")
            receiver.go_on.set()
            assert service.wait(60) == 0

    spool = Spool(queue, ["webhook 127.0.0.1 1"])
    assert len(spool) == 0, "it would be sent again by the next start"
    spool.close()
