"""The bank's own transactions, in the order of their file, against DuckDB over the CSV."""

import duckdb
import pytest

from ledgerops.ledger.jobs import find_job
from ledgerops.ledger.jobs.job import REPLAY_LATENESS
from ledgerops.ledger.sinks.committed import committed_files
from tests.ledger.jobs.feed import ARROW

pytestmark = pytest.mark.spark

BATCHES = 5
TABLES = {
    "transactions": """
        SELECT trans_id AS transaction_id, account_id, customer_id, fulldatewithtime::TIMESTAMPTZ AS event_time, type,
            operation, amount::DECIMAL(18,2) AS amount, balance::DECIMAL(18,2) AS balance
        FROM read_csv(?, all_varchar = true)
    """,
    "customers": """
        SELECT customer_id, sex, first, last, email, city, state, district_id::INT AS district_id,
            TIMESTAMPTZ '2013-01-01 00:00:00+00' AS updated_at
        FROM read_csv(?, all_varchar = true)
    """,
}
# a question about what a job wrote, and the question to the bank's tables that has the same answer
SUMS = "SELECT count(*), count(DISTINCT transaction_id), sum(amount), sum(balance) FROM"
QUESTIONS = {
    "dedup_transactions": (f"{SUMS} output", f"{SUMS} transactions"),
    "daily_counts": (
        "FROM output ORDER BY ALL",
        """
        SELECT day, day + INTERVAL 1 DAY, customer_id, count(*), sum(amount)
        FROM (SELECT *, time_bucket(INTERVAL 1 DAY, event_time) AS day FROM transactions)
        WHERE day + INTERVAL 1 DAY <= (SELECT max(event_time) - INTERVAL 2 DAYS FROM transactions)
        GROUP BY day, customer_id ORDER BY ALL
        """,
    ),
    "debit_credit_pairs": (
        "SELECT debit_transaction_id, credit_transaction_id FROM output ORDER BY ALL",
        """
        SELECT d.transaction_id, c.transaction_id FROM transactions d JOIN transactions c
        ON d.customer_id = c.customer_id AND d.type = 'Debit' AND c.type = 'Credit'
            AND d.amount > 10000 AND c.amount > 10000 AND abs(epoch(c.event_time) - epoch(d.event_time)) <= 3600
        ORDER BY ALL
        """,
    ),
    "enriched_transactions": (
        "SELECT last, city, bool_and(enriched), count(*), count(DISTINCT transaction_id), sum(amount) FROM output "
        "GROUP BY last, city ORDER BY ALL",
        "SELECT last, city, true, count(*), count(*), sum(amount) FROM transactions JOIN customers USING (customer_id) "
        "GROUP BY last, city ORDER BY ALL",
    ),
}
ROWS = {"dedup_transactions": 1, "daily_counts": 38_699, "debit_credit_pairs": 49, "enriched_transactions": 1_209}


@pytest.fixture(scope="module")
def bank(data_dir):
    """A database with the tables `transactions` and `customers`."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for table, select in TABLES.items():
            db.execute(f"CREATE TABLE {table} AS {select}", [str(data_dir / f"{table}.csv")])
        yield db


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_job_makes_of_the_whole_file_in_two_runs_what_duckdb_makes_of_it(bank, feed, name):
    case = feed(find_job(name))
    if "customers" in case.job.inputs:
        case.add_table(bank.sql("FROM customers").to_arrow_table().cast(ARROW["customers"]), "customers")
    rows = bank.sql("FROM transactions").to_arrow_table().cast(ARROW["transactions"])
    size = -(-rows.num_rows // BATCHES)
    for batch in range(BATCHES):
        if batch == 2:
            case.run(lateness=REPLAY_LATENESS)
        case.add_table(rows.slice(batch * size, size))
    case.run(lateness=REPLAY_LATENESS)
    bank.execute(f"CREATE OR REPLACE VIEW output AS FROM read_parquet({[*map(str, committed_files(case.output))]})")

    written, expected = (bank.sql(question).fetchall() for question in QUESTIONS[name])
    assert written == expected
    assert len(expected) == ROWS[name]
