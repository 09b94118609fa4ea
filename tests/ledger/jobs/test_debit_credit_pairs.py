import datetime
from decimal import Decimal

import pytest

from ledgerops.ledger.jobs.debit_credit_pairs import JOB
from ledgerops.ledger.run.start import JOIN_VERSION, PROVIDER, ROCKSDB
from tests.ledger.jobs.feed import instant, transaction

pytestmark = pytest.mark.spark

LARGE = Decimal("20000.00")
HOUR, MICROSECOND = datetime.timedelta(hours=1), datetime.timedelta(microseconds=1)


def debit(name, at):
    return transaction(name, at, type="Debit", amount=LARGE)


def credit(name, at, customer="C1", amount=LARGE):
    return transaction(name, at, customer, amount=amount)


def test_the_source_is_read_once_for_both_sides_and_a_side_may_be_idle(feed):
    case = feed(JOB)
    at_the_limit, of_another = credit("c2", "10:40", amount=Decimal("10000.00")), credit("c3", "10:50", "C2")
    case.add(
        [debit("d1", "10:00"), credit("c1", "10:30"), at_the_limit, of_another],
        [debit("d2", "11:00"), debit("d3", "11:40")],
        [credit("c4", "11:20")],
    )

    assert [batch["numInputRows"] for batch in case.run() if batch["numInputRows"]] == [4, 2, 1]
    pairs = [("d1", "c1"), ("d2", "c1"), ("d2", "c4"), ("d3", "c4")]
    assert case.rows("debit_transaction_id, credit_transaction_id") == pairs


def test_an_hour_is_exact_to_the_microsecond(feed):
    case = feed(JOB)
    rows, pairs = [], []
    for number, place in enumerate(("00:00.000001", "17:03.123457", "59:59.999999")):
        at, customer = instant(f"2024-03-01T10:{place}"), f"C{number}"
        rows.append(transaction(f"d{number}", at.isoformat()[:-6], customer, type="Debit", amount=LARGE))
        for name, apart in (
            ("before", -HOUR),
            ("after", HOUR),
            ("early", -HOUR - MICROSECOND),
            ("late", HOUR + MICROSECOND),
        ):
            rows.append(credit(f"{name}{number}", (at + apart).isoformat()[:-6], customer))
        pairs += [(f"d{number}", f"after{number}"), (f"d{number}", f"before{number}")]
    case.add(rows)

    case.run()

    assert case.rows("debit_transaction_id, credit_transaction_id") == pairs


def test_rows_that_find_no_partner_any_more_leave_the_state(feed):
    case = feed(JOB)
    case.add([debit("d1", "10:00"), credit("c1", "10:00")], [debit("d2", "13:00"), credit("c2", "13:00")])

    kept = [operator["numRowsTotal"] for batch in case.run() for operator in batch["stateOperators"]]

    assert (max(kept), kept[-1]) == (4, 2)


def test_a_checkpoint_with_four_stores_goes_on_with_them(feed, job_session):
    case = feed(JOB)
    stores = []
    for version, batch in (("2", debit("d1", "10:00")), ("3", credit("c1", "10:30"))):
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
    case.add([debit("d1", "10:00")])
    [operator] = case.run()[0]["stateOperators"]
    assert operator["numStateStoreInstances"] == operator["numShufflePartitions"]
