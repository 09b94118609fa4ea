import json
import time
import zlib

import pytest
import urllib3

from ledgerops.servers.risk import MAX_TRANSACTIONS, Behaviour, NotScorable, RiskService, ScoreServer, score
from tests.tables import cases

NOTHING = json.dumps({"transactions": []})


@pytest.fixture(scope="module")
def risk():
    with RiskService(Behaviour(latency_seconds=0.0)) as running:
        yield running


def post(url, body=NOTHING, path="/scores"):
    return urllib3.request("POST", f"{url}{path}", body=body, retries=False, timeout=60.0)


@cases(
    "transaction, rest",
    ("a credit of nothing", {"type": "Credit", "amount": "0"}, 0.0),
    ("a debit", {"type": "Debit", "amount": "50000.00"}, 0.35),
    ("no type, an amount below zero", {"type": None, "amount": -50000}, 0.15),
    ("more than counts", {"type": "Credit", "amount": 1e9}, 0.3),
)
def test_the_score_is_a_function_of_the_transaction(transaction, rest):
    assert score({"transaction_id": "T1", **transaction}) == round(zlib.crc32(b"T1") / 2**33 + rest, 4)


@cases(
    "transaction, reason",
    ("no id", {"amount": "1"}, "no transaction_id"),
    ("an id that is no text", {"transaction_id": 5, "amount": "1"}, "no transaction_id"),
    ("no amount", {"transaction_id": "T1"}, "no amount"),
    ("words", {"transaction_id": "T1", "amount": "much"}, "amount is not a number"),
    ("a list", {"transaction_id": "T1", "amount": [1]}, "amount is not a number"),
    ("no number by its name", {"transaction_id": "T1", "amount": "NaN"}, "amount is not a number"),
)
def test_a_transaction_without_what_it_takes_is_refused(transaction, reason):
    with pytest.raises(NotScorable, match=f"^{reason}$"):
        score(transaction)


def test_many_are_scored_by_post_and_a_bad_one_spoils_only_itself(risk):
    good = {"transaction_id": "T1", "type": "Debit", "amount": "12.50"}
    answer = post(risk.url, json.dumps({"transactions": [good, {"transaction_id": "T2"}, good]}))
    one = {"transaction_id": "T1", "score": score(good)}
    assert answer.json() == {"scores": [one, {"transaction_id": "T2", "error": "no amount"}, one]}


@cases(
    "body, status",
    ("not JSON", "{", 400),
    ("not an object", "[]", 400),
    ("not transactions", '{"transactions": [1]}', 400),
    ("too many", json.dumps({"transactions": [{}] * (MAX_TRANSACTIONS + 1)}), 413),
    ("just not too many", json.dumps({"transactions": [{}] * MAX_TRANSACTIONS}), 200),
)
def test_a_bad_question_gets_a_status_and_the_service_lives_on(risk, body, status):
    assert post(risk.url, body).status == status
    assert post(risk.url, "{}", path="/other").status == 404


def test_calls_fail_and_hang_in_the_share_that_was_asked_for():
    behaviour = Behaviour(latency_seconds=0.0, fail_share=0.3, hang_share=0.02, seed=1)
    with ScoreServer(0, behaviour) as server:
        drawn = [server.next_outcome() for _ in range(100)]
    found = []
    with RiskService(behaviour) as risk, urllib3.PoolManager(retries=False) as connections:
        for each in drawn:
            timeout = 0.3 if each == "hang" else 50.0  # shorter than a call that hangs keeps its connection
            try:
                found.append(connections.request("POST", f"{risk.url}/scores", body=NOTHING, timeout=timeout).status)
            except urllib3.exceptions.HTTPError:
                found.append("hung")

    assert found == [{"answer": 200, "fail": 503, "hang": "hung"}[each] for each in drawn]
    assert 15 <= found.count(503) <= 45 and 1 <= found.count("hung") <= 8


def test_an_answer_takes_its_time():
    with RiskService(Behaviour(latency_seconds=0.2)) as risk:
        began = time.monotonic()
        post(risk.url)
        assert time.monotonic() - began >= 0.2


def test_it_comes_back_on_its_port():
    with RiskService() as risk:
        before = risk.url
        risk.stop()
        with pytest.raises(urllib3.exceptions.HTTPError):
            post(before)
        risk.start()

        assert risk.url == before
        assert post(risk.url).status == 200
