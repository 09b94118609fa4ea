import time
import zlib
from dataclasses import replace
from functools import partial

import pytest

from ledgerops.ledger.jobs.calls import Limits
from ledgerops.ledger.jobs.risk_scores import CALL_TRANSACTIONS, JOB, transform
from ledgerops.servers.risk import Behaviour, RiskService
from tests.ledger.jobs.feed import transaction
from tests.ledger.jobs.oracle import disordered, rows_of

pytestmark = pytest.mark.spark

# however slow the machine, there is time for an answer
PATIENT = Limits(timeout_seconds=60.0, retries=1, pause_seconds=0.01, max_pause_seconds=0.05, total_seconds=100.0)
WANTED = "transaction_id, customer_id, amount, score, reason, output"


def limited(limits=PATIENT):
    return replace(JOB, transform=partial(transform, limits=limits))


def score(row):
    """The formula of the service, written out once more."""
    size = min(float(row["amount"]) / 100_000, 1.0)
    return round(zlib.crc32(row["transaction_id"].encode()) / 2**33 + 0.3 * size + 0.2 * (row["type"] == "Debit"), 4)


def test_every_row_is_scored_or_refused_with_a_reason_and_written_once(feed):
    case = feed(limited())
    runs = disordered()
    for number, row in enumerate(rows_of(runs)):
        row["amount"] = None if number % 17 == 0 else row["amount"]
        row["transaction_id"] = None if number % 29 == 0 else row["transaction_id"]
    with RiskService() as risk:
        case.run_each(runs, services={"risk": risk.url})

    expected = []
    for row in rows_of(runs):
        columns = name, _, amount = row["transaction_id"], row["customer_id"], row["amount"]
        if name is None or amount is None:
            reason = f"refused: no {'transaction_id' if name is None else 'amount'}"
            expected.append((*columns, None, reason, "risk_scores.failed"))
        else:
            expected.append((*columns, score(row), None, "risk_scores"))
    assert sorted(case.rows(WANTED), key=str) == sorted(expected, key=str)
    assert {row[4] for row in expected} == {None, "refused: no transaction_id", "refused: no amount"}


def test_a_service_that_fails_and_hangs_loses_and_repeats_nothing(feed):
    case = feed(limited(replace(PATIENT, timeout_seconds=0.3)))
    names = [f"t{number:04}" for number in range(40 * CALL_TRANSACTIONS)]
    case.add([transaction(name, "10:00") for name in names])
    with RiskService(Behaviour(latency_seconds=0.0, fail_share=0.5, hang_share=0.1, seed=3)) as risk:
        case.run(services={"risk": risk.url})

    found = case.rows("transaction_id, score IS NULL, reason, output")
    ends = {row[1:] for row in found}
    certain = {(False, None, "risk_scores"), (True, "status 503", "risk_scores.failed")}
    assert [row[0] for row in found] == names
    assert certain <= ends <= certain | {(True, "no answer within 0.3 s", "risk_scores.failed")}


def test_a_service_that_never_answers_takes_no_longer_than_its_time(feed):
    case = feed(limited(Limits(concurrency=2, timeout_seconds=60.0, retries=5, total_seconds=1.0)))
    names = [f"t{number:03}" for number in range(10 * CALL_TRANSACTIONS)]
    case.add([transaction(name, "10:00") for name in names])
    with RiskService(Behaviour(hang_share=1.0)) as risk:
        began = time.monotonic()
        case.run(services={"risk": risk.url})

    assert time.monotonic() - began < 55, "a call was waited for"
    found = case.rows("transaction_id, reason, output")
    assert found == [(name, "no time left", "risk_scores.failed") for name in names]
