from datetime import timedelta
from decimal import Decimal

import pytest

from ledgerops.ledger.jobs.unified_flow import JOB
from tests.ledger.jobs.feed import transaction
from tests.ledger.jobs.oracle import ask, batches_of, disordered, rows_of

pytestmark = pytest.mark.spark


def sides(batches):
    """The debits and the credits of each batch."""
    return [[[row for row in batch if row["type"] == kind] for batch in batches] for kind in ("Debit", "Credit")]


def test_every_row_of_both_inputs_is_written_once_and_money_is_conserved(feed):
    case = feed(JOB)
    runs = disordered()
    watermarks = []
    for run in runs:
        debits, credits = sides(run)
        case.add(*debits, name="debits")
        case.add(*credits, name="credits")
        watermarks += [progress["eventTime"]["watermark"] for progress in case.run(lateness="10 minutes")]

    rows = rows_of(runs)
    signed = "*, CASE type WHEN 'Debit' THEN -amount ELSE amount END AS signed_amount"
    assert case.rows() == ask(f"SELECT {signed} FROM rows ORDER BY ALL", rows)
    assert case.rows("sum(signed_amount)") == ask(
        "SELECT sum(amount) FILTER (type = 'Credit') - sum(amount) FILTER (type = 'Debit') FROM rows", rows
    )
    slower = [batch for batch in batches_of(runs, timedelta(minutes=10), kinds=("Debit", "Credit")) if batch.rows]
    assert [f"{batch.evict:%FT%T}" for batch in slower] == [each[:19] for each in watermarks[: len(slower)]]


def test_an_idle_input_holds_the_watermark_and_no_row(feed):
    case = feed(JOB)
    case.add([transaction("d1", "10:00", type="Debit")], [transaction("d2", "23:00", type="Debit")], name="debits")

    progress = case.run(lateness="10 minutes")
    case.work([transaction("d3", "09:00", type="Debit", amount=None)], name="debits", lateness="10 minutes")

    assert {one["eventTime"].get("watermark") for one in progress} == {"1970-01-01T00:00:00.000Z"}
    ten = Decimal("-10.00")
    assert case.rows("transaction_id, signed_amount") == [("d1", ten), ("d2", ten), ("d3", None)]


def test_the_input_and_not_the_type_says_where_money_goes(feed):
    case = feed(JOB)
    case.add([transaction("a debit", "10:00", type="Credit")], name="debits")
    case.work([transaction("a credit", "10:00", type="Debit")], name="credits")

    assert case.rows("transaction_id, signed_amount, type") == [
        ("a credit", Decimal("10.00"), "Debit"),
        ("a debit", Decimal("-10.00"), "Credit"),
    ]
