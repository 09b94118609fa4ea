from decimal import Decimal

import pytest

from ledgerops.ledger.jobs.top_customers import JOB
from tests.ledger.jobs.feed import transaction

pytestmark = pytest.mark.spark


def made(customer, *amounts, day="2024-02-29T00:00"):
    return [transaction(f"{customer} {n}", day, customer, amount=Decimal(amount)) for n, amount in enumerate(amounts)]


def test_of_equally_many_the_larger_sum_comes_first_and_then_the_lesser_id(feed):
    case = feed(JOB)
    case.work(
        made("few", "90.00") + made("D", "1.00", "2.00") + made("B", "1.00", "1.50"),
        made("A", "1.25", "1.25") + made("C", "0.01", "0.01", "0.01"),
        made("end", "1.00", day="2024-03-07T00:00"),
        lateness="0 seconds",
    )
    assert case.rows("rank, customer_id, transactions, amount") == [
        (1, "C", 3, Decimal("0.03")),
        (2, "D", 2, Decimal("3.00")),
        (3, "A", 2, Decimal("2.50")),
    ]
