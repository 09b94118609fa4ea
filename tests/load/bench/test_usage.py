"""CPU seconds of a run, by process and by thread."""

from __future__ import annotations

import threading
import time

import psutil
import pytest

from load.bench.usage import ThreadMeter
from tests.programs import until

SECONDS = 0.3
TOLERANCE = 0.1  # the system counts CPU time in steps of 10 ms


def burn(seconds=SECONDS):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def ended(thread):
    """Waits until the system has ended it, too, which comes after `join`."""
    thread.join()
    until(lambda: thread.native_id not in {each.id for each in psutil.Process().threads()}, 60, "the thread's end")


def burnt_by(name):
    meter = ThreadMeter(("exporter", "(answering)"))
    thread = threading.Thread(target=burn, name=name)
    thread.start()
    ended(thread)
    return meter.used()


@pytest.mark.parametrize("name", ["exporter", "Thread-7 (answering)"])
def test_the_time_of_a_thread_of_that_name_is_counted_even_after_its_end(name):
    assert burnt_by(name) == pytest.approx(SECONDS, abs=TOLERANCE)


def test_the_time_of_a_thread_that_goes_on_is_counted():
    stop = threading.Event()
    thread = threading.Thread(target=lambda: (burn(), stop.wait(60)), name="exporter")
    meter = ThreadMeter(("exporter",))
    thread.start()
    while meter.used() < SECONDS - TOLERANCE and thread.is_alive():
        time.sleep(0.01)
    stop.set()
    ended(thread)

    assert meter.used() == pytest.approx(SECONDS, abs=TOLERANCE)


def test_the_time_of_other_threads_is_not_counted():
    meter = ThreadMeter(("exporter", "(answering)"))
    go_on = threading.Event()
    done = threading.Event()
    thread = threading.Thread(target=lambda: (burn(), done.set(), go_on.wait(60)), name="exporter of others")
    thread.start()
    burn()
    assert done.wait(60)
    used = meter.used()
    go_on.set()
    thread.join()

    assert used == pytest.approx(0.0, abs=TOLERANCE)
