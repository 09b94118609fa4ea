"""The bank's own transactions, in the order of their file, against DuckDB over the CSV."""

from pathlib import Path

import duckdb
import pytest

from ledgerops.ledger.jobs import find_job
from ledgerops.ledger.jobs.job import REPLAY_LATENESS
from ledgerops.ledger.sinks.committed import committed_files
from tests.ledger.jobs.feed import ARROW, Feed

pytestmark = pytest.mark.spark

BATCHES = 5
TRANSACTIONS = """
SELECT trans_id AS transaction_id, account_id, customer_id, fulldatewithtime::TIMESTAMPTZ AS event_time, type,
    operation, amount::DECIMAL(18,2) AS amount, balance::DECIMAL(18,2) AS balance
FROM read_csv(?, all_varchar = true)
"""
CUSTOMERS = """
SELECT customer_id, sex, first, last, email, city, state, district_id::INT AS district_id,
    TIMESTAMPTZ '2013-01-01 00:00:00+00' AS updated_at
FROM read_csv(?, all_varchar = true)
"""


@pytest.fixture(scope="module")
def bank(data_dir: Path):
    """A database with the tables `transactions` and `customers`."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for table, select in (("transactions", TRANSACTIONS), ("customers", CUSTOMERS)):
            db.execute(f"CREATE TABLE {table} AS {select}", [str(data_dir / f"{table}.csv")])
        yield db


@pytest.fixture
def replayed(bank, feed):
    """The table `output`: what a job made of the whole file, read in two runs."""

    def work(name: str) -> None:
        case: Feed = feed(find_job(name))
        if "customers" in case.job.inputs:
            customers = bank.sql("FROM customers").to_arrow_table()
            case.add_table(customers.cast(ARROW["customers"]), "customers")
        rows = bank.sql("FROM transactions").to_arrow_table().cast(ARROW["transactions"])
        size = -(-rows.num_rows // BATCHES)
        for batch in range(BATCHES):
            if batch == 2:
                case.run(lateness=REPLAY_LATENESS)
            case.add_table(rows.slice(batch * size, size))
        case.run(lateness=REPLAY_LATENESS)
        files = [str(file) for file in committed_files(case.output)]
        bank.execute(f"CREATE OR REPLACE VIEW output AS FROM read_parquet({files})")

    return work


def test_dedup_loses_and_repeats_nothing(bank, replayed):
    replayed("dedup_transactions")
    question = "SELECT count(*), count(DISTINCT transaction_id), sum(amount), sum(balance) FROM "
    assert bank.sql(question + "output").fetchall() == bank.sql(question + "transactions").fetchall()


def test_daily_counts_are_those_of_every_day_that_the_watermark_has_passed(bank, replayed):
    replayed("daily_counts")

    expected = bank.sql("""
        SELECT day, day + INTERVAL 1 DAY, customer_id, count(*), sum(amount)
        FROM (SELECT *, time_bucket(INTERVAL 1 DAY, event_time) AS day FROM transactions)
        WHERE day + INTERVAL 1 DAY <= (SELECT max(event_time) - INTERVAL 2 DAYS FROM transactions)
        GROUP BY day, customer_id ORDER BY ALL
    """).fetchall()
    assert bank.sql("FROM output ORDER BY ALL").fetchall() == expected
    assert len(expected) > 30_000


def test_pairs_are_all_pairs_in_the_file(bank, replayed):
    replayed("debit_credit_pairs")

    found = bank.sql("SELECT debit_transaction_id, credit_transaction_id FROM output ORDER BY ALL").fetchall()
    expected = bank.sql("""
        SELECT d.transaction_id, c.transaction_id FROM transactions d JOIN transactions c
        ON d.customer_id = c.customer_id AND d.type = 'Debit' AND c.type = 'Credit'
            AND d.amount > 10000 AND c.amount > 10000
            AND abs(epoch(c.event_time) - epoch(d.event_time)) <= 3600
        ORDER BY ALL
    """).fetchall()
    assert found == expected
    assert len(expected) == 49


def test_enrichment_gives_each_transaction_its_customer(bank, replayed):
    replayed("enriched_transactions")

    found = bank.sql("""
        SELECT count(*), count(DISTINCT transaction_id), sum(amount), bool_and(enriched) FROM output
    """).fetchall()
    expected = bank.sql("SELECT count(*), count(*), sum(amount), true FROM transactions").fetchall()
    by_name = "SELECT last, city, count(*), sum(amount) FROM {} GROUP BY last, city ORDER BY ALL"
    assert found == expected
    assert (
        bank.sql(by_name.format("output")).fetchall()
        == bank.sql(by_name.format("transactions JOIN customers USING (customer_id)")).fetchall()
    )
