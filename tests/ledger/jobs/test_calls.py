"""Against a server that answers by script, so that every attempt can be counted."""

import json
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from ledgerops.ledger.jobs.calls import NO_TIME, Calls, Failure, Limits
from tests.programs import until
from tests.serving import Background, Quiet
from tests.tables import cases

# no answer takes so long that it is asked for again, however slow the machine
PATIENT = Limits(concurrency=4, timeout_seconds=60.0, retries=2, pause_seconds=0.01, max_pause_seconds=0.05)
HASTY = replace(PATIENT, timeout_seconds=0.3)
HANG = 0


class Handler(Quiet):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.heard.append((self.path, question, self.headers.get("Authorization")))
            status, body = server.script.pop(0) if server.script else (200, json.dumps(question))
            server.busy += 1
            server.most = max(server.most, server.busy)
        server.gate.wait(30)
        with server.lock:
            server.busy -= 1
        if status == HANG:
            server.end.wait(30)
            self.close_connection = True
            return
        self.reply(status, body.encode(), {"Retry-After": "3600", "Location": "/elsewhere"})


class Server(Background):
    """Answers by the script, then with the question, while its gate is open."""

    def __init__(self, *script):
        self.script, self.heard, self.busy, self.most = list(script), [], 0, 0
        self.lock, self.gate, self.end = threading.Lock(), threading.Event(), threading.Event()
        self.gate.set()
        super().__init__(Handler)

    def close(self):
        self.gate.set()
        self.end.set()
        super().close()


@contextmanager
def calling(*script, limits=PATIENT, user=""):
    """A server that answers by the script, and calls to it."""
    with (
        closing(Server(*script)) as server,
        closing(Calls(f"http://{user}127.0.0.1:{server.server_port}", limits)) as calls,
    ):
        yield server, calls


def ask(calls, *questions, seconds=30.0):
    return calls.run(lambda question: calls.post("/ask", question), questions, time.monotonic() + seconds)


def test_each_question_gets_its_own_answer_in_order():
    with calling() as (server, calls):
        questions = [{"n": n} for n in range(50)]
        assert ask(calls, *questions) == questions
        assert sorted(question["n"] for _, question, _ in server.heard) == list(range(50))
        assert {path for path, _, _ in server.heard} == {"/ask"}


def test_no_question_is_no_call():
    with calling() as (server, calls):
        assert ask(calls) == []
        assert server.heard == []


def test_calls_are_concurrent_up_to_the_limit_and_not_beyond():
    with calling() as (server, calls):
        server.gate.clear()
        asker = threading.Thread(target=ask, args=(calls, *({"n": n} for n in range(12))))
        asker.start()
        until(lambda: server.busy == PATIENT.concurrency, 25, "as many calls as there may be")
        time.sleep(0.3)  # in which one more would come
        server.gate.set()
        asker.join()

        assert len(server.heard) == 12
        assert server.most == PATIENT.concurrency


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_and_soon(status):
    # "soon" is within the time of `ask`: Retry-After asks for an hour
    with calling((status, "busy"), (status, "busy")) as (server, calls):
        assert ask(calls, {"n": 1}) == [{"n": 1}]
        assert len(server.heard) == 3


def test_a_hanging_attempt_is_given_up_and_tried_again():
    # a machine that is slow takes more than the second attempt
    with calling((HANG, ""), limits=replace(HASTY, retries=20)) as (server, calls):
        assert ask(calls, {"n": 1}, seconds=20.0) == [{"n": 1}]  # before the server would end the first
        assert len(server.heard) >= 2


@cases(
    "answer, attempts, reason",
    ("it stays busy", (503, "busy"), 3, "status 503"),
    ("it hangs", (HANG, ""), 3, "no answer within 0.3 s"),
    ("the question is at fault", (422, "no"), 1, "status 422"),
    ("it sends us elsewhere", (307, ""), 1, "status 307"),
    ("another kind of answer", (200, "<html>"), 1, "answer is not JSON"),
)
def test_one_bad_call_is_a_failure_with_a_reason_and_the_others_go_on(answer, attempts, reason):
    with calling(*[answer] * attempts, limits=HASTY if answer[0] == HANG else PATIENT) as (server, calls):
        assert ask(calls, {"n": 1}) == [Failure(reason)]
        until(lambda: len(server.heard) == attempts, 30, "the server hears of each attempt")
        assert ask(calls, {"n": 2}, {"n": 3}) == [{"n": 2}, {"n": 3}]


def test_a_service_that_is_not_there_is_said():
    with calling() as (server, calls):
        server.close()
        assert ask(calls, {"n": 1}) == [Failure("cannot connect")]


def test_an_answer_of_another_shape_is_a_failure():
    with calling() as (_, calls):
        deadline = time.monotonic() + 30
        answers = calls.run(lambda question: calls.post("/ask", question)["scores"], [{"n": 1}], deadline)
        assert answers == [Failure("unexpected answer (KeyError)")]


def test_all_calls_together_end_by_the_deadline():
    with calling(limits=Limits(concurrency=2, timeout_seconds=30.0, retries=0)) as (server, calls):
        server.gate.clear()
        began = time.monotonic()

        answers = ask(calls, *({"n": n} for n in range(20)), seconds=0.3)

        assert time.monotonic() - began < 20, "a call was waited for"
        assert answers == [Failure(NO_TIME)] * 20
        assert ask(calls, {"n": 21}, seconds=-1) == [Failure(NO_TIME)]
        server.gate.set()
        assert ask(calls, {"n": 22}) == [{"n": 22}]
        assert len(server.heard) <= 3, "what did not come to its turn was asked"


def test_user_and_password_are_sent_and_not_said():
    with calling((503, ""), (503, ""), (503, ""), user="me:secret@") as (server, calls):
        assert ask(calls, {"n": 1}) == [Failure("status 503")]
        assert {head for _, _, head in server.heard} == {"Basic bWU6c2VjcmV0"}
        assert calls.url == server.url
