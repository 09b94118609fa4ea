import pytest

from ledgerops.jobs.enriched_transactions import JOB
from tests.jobs.feed import customer, transaction

pytestmark = pytest.mark.spark


def test_a_transaction_is_written_with_its_customer_at_once_or_when_the_customer_arrives(feed):
    case = feed(JOB)
    case.add([customer("C1", "Smith")], [customer("C2", "Jones")], name="customers")
    case.add([transaction("t1", "10:00", "C1"), transaction("t2", "10:01", "C2"), transaction("t3", "10:02", "C2")])
    case.run()

    assert case.rows("transaction_id, last, enriched") == [
        ("t1", "Smith", True),
        ("t2", "Jones", True),
        ("t3", "Jones", True),
    ]
