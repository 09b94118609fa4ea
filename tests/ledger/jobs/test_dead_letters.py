"""Each reject is written once, also by a batch that is repeated."""

import json
from datetime import UTC, datetime

import pytest

from ledgerops.ledger.jobs.dead_letters import JOB, MAX_VALUE_BYTES
from ledgerops.ledger.plan.schemas import TABLES
from ledgerops.ledger.run.start import start
from ledgerops.ledger.sinks import ParquetSink
from ledgerops.ledger.sources import landing
from tests.ledger.jobs.feed import read, uncommit

pytestmark = pytest.mark.spark

LONG = json.dumps({"transaction_id": "é" * 2000}, ensure_ascii=False).encode()


@pytest.fixture
def written(job_session, tmp_path):
    """What has been written after all files that are there were read."""

    def work():
        rejects = landing.open_table(job_session, tmp_path / "landing", "rejects", 1, "unused")
        sink, checkpoint = ParquetSink(tmp_path / "output"), tmp_path / "checkpoint"
        query = start(JOB, {"rejects": rejects}, sink=sink, checkpoint=checkpoint, available_now=True)
        assert query.awaitTermination(120), "the query has not ended in time"
        return read(tmp_path / "output", "topic, reason, detail, value_length, value, key")

    return work


def test_rejects_are_written_once_with_the_start_of_their_value(written, job_session, tmp_path):
    transactions, customers = (tmp_path / "landing" / name for name in ("transactions", "customers"))
    transactions.mkdir(parents=True)
    (transactions / "a.jsonl").write_bytes(b"oh\n" + LONG + b"\n\n")
    no_json = ("invalid_json", "not one JSON object in UTF-8", 2)
    cut = ("missing_field", "no account_id", len(LONG), LONG[:MAX_VALUE_BYTES])
    expected = [("transactions/a.jsonl", *no_json, b"oh", None), ("transactions/a.jsonl", *cut, None)]
    assert written() == expected

    customers.mkdir()
    (customers / "b.jsonl").write_bytes(b"[]\n")
    expected = [("customers/b.jsonl", *no_json, b"[]", None), *expected]
    assert written() == expected

    uncommit(tmp_path / "checkpoint")
    assert written() == expected


def test_the_place_of_a_reject_is_kept(job_session):
    at = datetime(2024, 3, 1, tzinfo=UTC)
    reject = ("tombstone", "no value", "customers", 3, 2**40, at, b"C1", None)
    [row] = JOB.transform(job_session.createDataFrame([reject], TABLES["rejects"])).collect()
    assert (row.topic, row.partition, row.offset, bytes(row.key)) == ("customers", 3, 2**40, b"C1")
    assert (row.value, row.value_length) == (None, None)
