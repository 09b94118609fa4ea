from dataclasses import replace
from decimal import Decimal
from functools import partial

import pytest

from ledgerops.ledger.jobs.customer_activity import JOB, transform
from tests.ledger.jobs.feed import transaction
from tests.ledger.jobs.oracle import ask, disordered, rows_of

pytestmark = pytest.mark.spark

BUSY = 55  # of the four customers of the disordered input, some are above it and some below


@pytest.fixture
def case(feed):
    return feed(replace(JOB, transform=partial(transform, least=BUSY)))


def current(case):
    """The newest row of each customer, which has the highest count."""
    return sorted({row[0]: row for row in case.rows("customer_id, transactions, amount")}.values())


def test_the_newest_rows_are_the_counts_of_all_transactions_late_ones_and_copies_too(case):
    question = f"SELECT customer_id, count(*), sum(amount) FROM rows GROUP BY 1 HAVING count(*) > {BUSY} ORDER BY ALL"
    runs = disordered()

    case.run_each(runs)

    expected = ask(question, rows_of(runs))
    assert current(case) == expected
    assert 0 < len(expected) < 4, "no customer is below the limit, or none above"
    written = case.rows("customer_id, transactions")
    assert len(written) > len(expected)
    assert len(set(written)) == len(written), "a customer without a new transaction was written"


def test_a_customer_at_the_limit_is_not_written_and_rows_without_a_customer_are_not_counted(case):
    case.work(
        [transaction(f"a{n}", "10:00", "C1") for n in range(BUSY)],
        [transaction(f"b{n}", "10:00", None) for n in range(BUSY + 1)],
    )
    assert current(case) == []
    case.work([transaction("one more", "09:00", "C1")])

    assert current(case) == [("C1", BUSY + 1, Decimal("560.00"))]
