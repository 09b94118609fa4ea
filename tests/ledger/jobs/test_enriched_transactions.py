from dataclasses import replace
from functools import partial

import pytest

from ledgerops.ledger.jobs.enriched_transactions import JOB, transform
from tests.ledger.jobs.feed import customer, transaction

pytestmark = pytest.mark.spark

PATIENT = replace(JOB, transform=partial(transform, wait=3600.0))  # however slow the machine
WANTED = "transaction_id, last, enriched"


def test_transactions_wait_for_their_customer_across_a_restart_and_are_written_once(feed):
    case = feed(PATIENT)
    case.add([customer("C1", "Smith", "10:00"), customer("C1", "older", "09:00")], name="customers")
    case.add([transaction("t1", "10:00", "C1"), transaction("t2", "10:00:00.123456", "C2", operation='a "b" \\ ü')])
    case.work([transaction("t3", "10:02", "C2"), transaction("t4", "10:03", "C1")])
    assert case.rows(WANTED) == [("t1", "Smith", True), ("t4", "Smith", True)]

    case.work([customer("C2", "Jones")], name="customers")
    case.work([transaction("t5", "10:05", "C2")])

    names = ["Smith", "Jones", "Jones", "Smith", "Jones"]
    assert case.rows(WANTED) == [(f"t{n}", name, True) for n, name in enumerate(names, 1)]
    texts = case.rows("epoch_us(event_time), operation, amount::VARCHAR")
    assert texts[1] == (1_709_287_200_123_456, 'a "b" \\ ü', "10.00")


def test_what_has_waited_too_long_is_written_without_its_customer_and_only_once(feed):
    case = feed(replace(JOB, transform=partial(transform, wait=0.001)))
    case.work([transaction("t1", "10:00", "C2"), transaction("t2", "10:01", "C2")], [transaction("t3", "10:02", "C3")])
    assert case.rows(WANTED) == [("t1", None, False), ("t2", None, False)]

    case.add([customer("C2", "Jones")], name="customers")
    case.work([transaction("t4", "10:03", "C2")])

    assert case.rows(WANTED) == [*((f"t{n}", None, False) for n in (1, 2, 3)), ("t4", "Jones", True)]
