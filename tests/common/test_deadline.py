"""A time limit for work with a peer."""

import threading
import time

import pytest

from ledgerops.common.deadline import within


def no_thread(monkeypatch, reason):
    def start(self):
        raise RuntimeError(reason)

    monkeypatch.setattr(threading.Thread, "start", start)


def test_work_that_ends_in_time_gives_its_result_and_what_it_raises():
    assert within(lambda: 7, 60.0) == 7
    with pytest.raises(ZeroDivisionError):
        within(lambda: 1 / 0, 60.0)


def test_work_that_takes_longer_is_given_up():
    going_on = threading.Event()
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
        within(lambda: going_on.wait(60), 0.01)
    going_on.set()

    assert time.monotonic() - began < 60


def test_at_the_end_of_the_interpreter_where_no_thread_starts_the_work_is_done_all_the_same(monkeypatch):
    no_thread(monkeypatch, "can't create new thread at interpreter shutdown")

    assert within(lambda: 7, 60.0) == 7


def test_where_a_process_has_no_more_threads_it_is_said(monkeypatch):
    no_thread(monkeypatch, "can't start new thread")

    with pytest.raises(RuntimeError, match="can't start new thread"):
        within(lambda: 7, 60.0)
