"""A time limit for work with a peer."""

import threading
import time
import weakref

import pytest

from ledgerops.common.deadline import LAST, OneAtATime, within
from tests.programs import until


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


def test_there_work_that_hangs_is_given_up_if_a_thread_was_begun_before(monkeypatch):
    LAST.begin()
    no_thread(monkeypatch, "can't create new thread at interpreter shutdown")
    going_on = threading.Event()
    assert within(threading.current_thread, 60.0).name == "ledgerops-last"
    with pytest.raises(TimeoutError):
        within(lambda: going_on.wait(60), 0.01)
    with pytest.raises(TimeoutError):
        within(lambda: 7, 60.0)
    going_on.set()
    LAST.close()


def test_where_a_process_has_no_more_threads_it_is_said(monkeypatch):
    no_thread(monkeypatch, "can't start new thread")
    with pytest.raises(RuntimeError, match="can't start new thread"):
        within(lambda: 7, 60.0)


def test_questions_are_asked_in_one_thread_which_ends_when_it_is_closed():
    questions = OneAtATime("asking")
    first, second = (questions.within(threading.current_thread, 60.0) for _ in range(2))
    with pytest.raises(ZeroDivisionError):
        questions.within(lambda: 1 / 0, 60.0)
    questions.close()
    first.join(60)

    assert first is second is not threading.current_thread()
    assert not first.is_alive()
    with pytest.raises(TimeoutError, match="nothing is asked any more"):
        questions.within(threading.current_thread, 60.0)


def test_a_question_that_was_answered_is_kept_by_nothing():
    class Asked:
        pass

    asked, questions = Asked(), OneAtATime("asking")
    gone = weakref.ref(asked)
    questions.within(lambda held=asked: held is None, 60.0)
    del asked
    until(lambda: gone() is None)
    questions.close()


def test_while_a_question_has_no_answer_no_other_is_asked():
    questions, answer = OneAtATime("asking"), threading.Event()
    asked = []

    def hangs():
        asked.append(threading.current_thread())
        answer.wait(60)

    with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
        questions.within(hangs, 0.01)
    with pytest.raises(TimeoutError, match="an earlier question still has no answer"):
        questions.within(hangs, 60.0)
    [thread] = until(lambda: asked)

    answer.set()
    questions.close()
    thread.join(60)
    assert not thread.is_alive()
