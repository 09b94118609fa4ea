import pyarrow as pa
import pytest

from ledgerops.ledger.jobs.customer_transactions import JOB
from tests.ledger.jobs.feed import ARROW, customer
from tests.ledger.jobs.oracle import ask_tables, disordered, rows_of

pytestmark = pytest.mark.spark

WANTED = "transaction_id, event_time, amount, last, customer_updated_at"


def test_each_transaction_is_written_with_each_version_of_its_customer(feed):
    case = feed(JOB)
    versions = [
        [customer("C1", "Smith"), customer("C2", "Jones"), customer("C5", "Idle")],
        [customer("C1", "Brown", "2024-03-08T00:00"), customer("C3", "Green", "1950-01-01T00:00")],
    ]
    runs = disordered()
    for run, customers in zip(runs, versions, strict=True):
        case.add(*run)
        progress = case.work(customers, name="customers")

    rows = rows_of(runs)
    tables = {
        "rows": pa.Table.from_pylist(rows, schema=ARROW["transactions"]),
        "versions": pa.Table.from_pylist(versions[0] + versions[1], schema=ARROW["customers"]),
    }
    question = "SELECT transaction_id, event_time, amount, last, updated_at FROM rows JOIN versions USING (customer_id)"
    assert case.rows(WANTED) == ask_tables(f"{question} ORDER BY ALL", tables)
    assert progress[-1]["stateOperators"][0]["numRowsTotal"] == len(rows) + 5, "both sides are kept for good"
