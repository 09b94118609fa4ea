from decimal import Decimal

import pytest

from ledgerops.ledger.jobs.debit_credit_pairs import JOB
from ledgerops.ledger.run.start import JOIN_VERSION, PROVIDER, ROCKSDB
from tests.ledger.jobs.feed import transaction

pytestmark = pytest.mark.spark

LARGE = Decimal("20000.00")


def test_the_source_is_read_once_for_both_sides_and_a_side_may_be_idle(feed):
    case = feed(JOB)
    case.add(
        [
            transaction("d1", "10:00", type="Debit", amount=LARGE),
            transaction("c1", "10:30", type="Credit", amount=LARGE),
            transaction("c2", "10:40", type="Credit", amount=Decimal("10000.00")),  # not above the limit
            transaction("c3", "10:50", "C2", type="Credit", amount=LARGE),  # another customer's
        ],
        [
            transaction("d2", "11:00", type="Debit", amount=LARGE),
            transaction("d3", "11:40", type="Debit", amount=LARGE),
        ],
        [transaction("c4", "11:20", type="Credit", amount=LARGE)],
    )

    progress = [batch["numInputRows"] for batch in case.run() if batch["numInputRows"]]

    assert progress == [4, 2, 1]
    assert case.rows("debit_transaction_id, credit_transaction_id") == [
        ("d1", "c1"), ("d2", "c1"), ("d2", "c4"), ("d3", "c4"),
    ]  # fmt: skip


def test_a_checkpoint_with_four_stores_goes_on_with_them(feed, job_session):
    case = feed(JOB)
    stores = []
    for version, batch in (
        ("2", transaction("d1", "10:00", type="Debit", amount=LARGE)),
        ("3", transaction("c1", "10:30", type="Credit", amount=LARGE)),
    ):
        job_session.conf.set(PROVIDER, ROCKSDB)
        job_session.conf.set(JOIN_VERSION, version)
        case.add([batch])
        [operator] = case.run()[0]["stateOperators"]
        stores.append(operator["numStateStoreInstances"] // operator["numShufflePartitions"])

    assert stores == [4, 4]
    assert case.rows("debit_transaction_id, credit_transaction_id") == [("d1", "c1")]


def test_a_new_checkpoint_has_one_store_where_the_provider_can(feed, job_session):
    case = feed(JOB)
    job_session.conf.set(PROVIDER, ROCKSDB)
    case.add([transaction("d1", "10:00", type="Debit", amount=LARGE)])

    [operator] = case.run()[0]["stateOperators"]

    assert operator["numStateStoreInstances"] == operator["numShufflePartitions"]
