"""Which requests share an answer, and how much is sent at a time."""

from __future__ import annotations

import gzip
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ledgerops.common import http_answers
from ledgerops.common.http_answers import LARGE_BYTES, MAX_BYTES, MAX_BYTES_PER_ADDRESS, Answers, Connection
from ledgerops.common.http_handler import Answer, Request

METRICS = Request("/metrics")


def connection(address="a", waited=False):
    return Connection(address, 0.0, waited)


def numbered(size=1):
    """Answers of so many bytes, each with its number at the end."""
    count = itertools.count(1)
    return Answers(lambda request: Answer(b"%0*d" % (size, next(count))))


def sent(answers, asking, *others, request=METRICS):
    answer = answers.make(request, asking, [asking, *others])
    return None if answer is None else answer.body


def test_requests_that_did_not_wait_get_an_answer_of_their_own():
    answers = numbered()

    assert [sent(answers, connection()) for _ in range(3)] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("changed", [{"target": "/status"}, {"accept": "*/*"}, {"gzip": True}])
def test_requests_that_waited_share_an_answer_to_the_same_question(monkeypatch, changed):
    monkeypatch.setattr(http_answers, "SHARED_SECONDS", 600.0)
    answers = numbered()
    assert [sent(answers, connection(waited=True)) for _ in range(3)] == [b"1", b"1", b"1"]

    assert sent(answers, connection(waited=True), request=METRICS._replace(**changed)) == b"2"
    assert sent(answers, connection()) == b"3"


def test_many_at_once_have_it_made_once(monkeypatch):
    monkeypatch.setattr(http_answers, "SHARED_SECONDS", 600.0)
    together, count = threading.Barrier(8, timeout=60), itertools.count(1)
    answers = Answers(lambda request: Answer(b"%d" % next(count)))

    def ask(number):
        together.wait()
        return sent(answers, connection(waited=True))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {b"1"}


def test_a_shared_answer_is_made_anew_after_its_time(monkeypatch):
    monkeypatch.setattr(http_answers, "SHARED_SECONDS", -1.0)
    answers = numbered()

    assert [sent(answers, connection(waited=True)) for _ in range(2)] == [b"1", b"2"]


def test_a_large_answer_is_not_kept(monkeypatch):
    monkeypatch.setattr(http_answers, "SHARED_SECONDS", 600.0)
    answers = numbered(LARGE_BYTES + 1)

    assert [sent(answers, connection(waited=True))[-1:] for _ in range(2)] == [b"1", b"2"]


@pytest.mark.parametrize(("size", "packed"), [(1023, False), (1024, True)])
def test_only_what_is_worth_it_is_compressed(size, packed):
    answer = numbered(size).make(METRICS._replace(gzip=True), connection(), [])

    assert answer.packed is packed
    assert len(gzip.decompress(answer.body) if packed else answer.body) == size


def test_an_address_gets_no_more_of_large_answers_than_its_share_and_others_theirs():
    answers, half = numbered(MAX_BYTES_PER_ADDRESS // 2), [connection("a"), connection("a")]
    assert [len(sent(answers, each, *half)) for each in half] == [MAX_BYTES_PER_ADDRESS // 2] * 2

    assert sent(answers, connection("a"), *half) is None
    assert sent(answers, connection("b"), *half) is not None
    assert sent(answers, connection("a"), half[0]) is not None, "after the end of one of them"


def test_all_addresses_together_get_no_more_than_there_is():
    answers, served = numbered(MAX_BYTES // 4), [connection(str(number)) for number in range(4)]
    assert None not in [sent(answers, each, *served) for each in served]

    assert sent(answers, connection("another"), *served) is None


def test_small_answers_are_sent_whatever_else_is():
    large, answers = connection(), numbered(2 * MAX_BYTES)
    assert sent(answers, large) is not None, "the only one, however large"

    assert sent(numbered(LARGE_BYTES), connection(), large) is not None
    assert sent(numbered(LARGE_BYTES + 1), connection(), large) is None
