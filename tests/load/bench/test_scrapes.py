"""The CPU time of an exporter's threads."""

from __future__ import annotations

import threading
import time

import pytest

from ledgerops.common.http_handler import Answer
from load.bench.scrapes import ExporterMeter
from tests.agent.test_exporter import Served
from tests.programs import until

SECONDS = 0.3
TOLERANCE = 0.1


def burn(seconds=SECONDS):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.fixture
def served():
    served = Served(start_worker=False)
    served.exporter._pages["/burn"] = lambda query, accept: (burn(), Answer(b""))[1]
    yield served
    served.close()


def test_the_time_of_requests_is_counted_at_their_end(served):
    meter = ExporterMeter(served.exporter)
    for _ in range(2):
        assert served.get("/burn")[0] == 200
    until(lambda: meter.used() > 2 * SECONDS - TOLERANCE, 60, "the end of both requests")

    assert meter.used() == pytest.approx(2 * SECONDS, abs=TOLERANCE)


def test_the_time_of_the_accepting_thread_is_counted(served, monkeypatch):
    began, done = threading.Event(), threading.Event()

    def busy():
        if not began.is_set():
            began.set()
            burn()
            done.set()

    meter = ExporterMeter(served.exporter)
    monkeypatch.setattr(served.exporter._server, "service_actions", busy)
    assert done.wait(60)

    assert meter.used() == pytest.approx(SECONDS, abs=TOLERANCE)


def test_the_time_of_other_threads_is_not_counted(served):
    meter = ExporterMeter(served.exporter)
    thread = threading.Thread(target=burn)
    thread.start()
    thread.join()
    burn()

    assert meter.used() == pytest.approx(0.0, abs=TOLERANCE)


def test_a_new_meter_counts_from_its_begin(served):
    ExporterMeter(served.exporter)
    assert served.get("/burn")[0] == 200
    meter = ExporterMeter(served.exporter)
    assert served.get("/status")[0] == 200

    assert meter.used() == pytest.approx(0.0, abs=TOLERANCE)
