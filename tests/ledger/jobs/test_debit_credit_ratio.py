from decimal import Decimal

import pytest

from ledgerops.ledger.jobs.debit_credit_ratio import JOB
from tests.ledger.jobs.feed import transaction
from tests.ledger.jobs.oracle import ask, disordered, rows_of

pytestmark = pytest.mark.spark

COLUMNS = "customer_id, debits, credits, debit_amount, credit_amount, count_ratio, amount_ratio"
TOTALS = """
SELECT customer_id, count(*) FILTER (type = 'Debit') AS debits, count(*) FILTER (type = 'Credit') AS credits,
    coalesce(sum(amount) FILTER (type = 'Debit'), 0)::DECIMAL(28,2) AS debit_amount,
    coalesce(sum(amount) FILTER (type = 'Credit'), 0)::DECIMAL(28,2) AS credit_amount,
    debits / nullif(credits, 0)::DOUBLE, debit_amount::DOUBLE / nullif(credit_amount, 0)::DOUBLE
FROM rows GROUP BY customer_id HAVING list_contains($seen, customer_id) ORDER BY ALL
"""


def given(transaction_id, customer_id, **other):
    return transaction(transaction_id, "10:00", customer_id, **other)


def test_every_batch_writes_the_totals_of_its_customers_across_a_restart(feed):
    case = feed(JOB)
    runs = disordered()
    for number, row in enumerate(rows_of(runs)):
        row["amount"] = None if number % 17 == 0 else row["amount"]
        row["customer_id"] = None if number % 19 == 0 else row["customer_id"]
    before, expected = [], []
    for run in runs:
        for batch in run:
            for name, kind in (("debits", "Debit"), ("credits", "Credit")):
                case.add([row for row in batch if row["type"] == kind], name=name)
            before += batch
            expected += ask(TOTALS, before, seen=[row["customer_id"] for row in batch])
            if any(row["customer_id"] is None for row in batch):
                nobody = [{**row, "customer_id": "nobody"} for row in before if row["customer_id"] is None]
                expected += [(None, *row[1:]) for row in ask(TOTALS, nobody, seen=["nobody"])]
        case.run()

    order = [(row[0] or "~", row[1] + row[2], row[1]) for row in expected]
    assert case.rows(COLUMNS) == [row for _, row in sorted(zip(order, expected, strict=True), key=lambda pair: pair[0])]


def test_ratios_are_null_until_there_is_a_credit_and_money_in_it(feed):
    case = feed(JOB)
    case.add([given("d1", "C1"), given("d2", "C2")], [given("d3", "C1")], name="debits")
    case.work([given("c1", "C2", amount=Decimal(0))], [given("c2", "C1", amount=Decimal(5))], name="credits")

    assert case.rows("customer_id, debits, credits, count_ratio, amount_ratio") == [
        ("C1", 1, 0, None, None),
        ("C1", 2, 1, 2.0, 4.0),
        ("C2", 1, 1, 1.0, None),
    ]
