"""Jobs over the same disordered input, in two runs, against the oracle."""

from datetime import timedelta
from decimal import Decimal

import pytest

from ledgerops.ledger.jobs import find_job
from tests.ledger.jobs.feed import dropped
from tests.ledger.jobs.oracle import ask, batches_of, disordered, in_time, rows_of, sessions_of, with_late

pytestmark = pytest.mark.spark

LATENESS = timedelta(minutes=10)
EVERY = rows_of(disordered())
MASK = "CASE WHEN length({0}) > 4 THEN repeat('*', length({0}) - 4) || right({0}, 4) ELSE repeat('*', length({0})) END"
OPERATIONS = (None, "", "  ", "Withdrawal in Cash", "  Credit\tCard  Withdrawal ", "P\u0159evod", "in in")
# a job without state -> what DuckDB makes of all rows, late ones and copies too
ROW_BY_ROW = {
    "landed_transactions": "SELECT * FROM rows ORDER BY ALL",
    "large_credits": "SELECT * FROM rows WHERE type = 'Credit' AND amount > 40000 ORDER BY ALL",
    "masked_transactions": f"""
        SELECT transaction_id, {MASK.format("account_id")}, {MASK.format("customer_id")}, event_time, type, operation,
            amount, balance
        FROM rows ORDER BY ALL
    """,
    "operation_words": """
        SELECT transaction_id, customer_id, event_time, position::INT, words[position], length(words[position])
        FROM (
            SELECT *, unnest(range(1, len(words) + 1)) AS position
            FROM (SELECT *, string_split_regex(trim(operation), '\\s+') AS words FROM rows WHERE trim(operation) != '')
        )
        ORDER BY ALL
    """,
    "split_transactions": """
        SELECT *, CASE type WHEN 'Debit' THEN 'transactions.debits' WHEN 'Credit' THEN 'transactions.credits'
        ELSE 'split_transactions' END FROM rows ORDER BY ALL
    """,
}
# a job with windows -> its windows, each row in those that were open when it came
WINDOWS = {
    "daily_counts": """
        SELECT day, day + INTERVAL 1 DAY AS ends, customer_id, count(*), sum(amount)
        FROM (SELECT *, time_bucket(INTERVAL 1 DAY, event_time) AS day FROM rows)
        WHERE ends > operation::TIMESTAMPTZ AND ends <= $evict GROUP BY day, customer_id ORDER BY ALL
    """,
    "sliding_counts": """
        SELECT start, start + INTERVAL 1 DAY AS ends, customer_id, count(*), sum(amount)
        FROM (
            SELECT *, time_bucket(INTERVAL 2 HOURS, event_time) - n * INTERVAL 2 HOURS AS start
            FROM rows, range(12) AS copies(n)
        )
        WHERE ends > operation::TIMESTAMPTZ AND ends <= $evict GROUP BY start, customer_id ORDER BY ALL
    """,
    "cumulative_counts": """
        SELECT midnight, ends, customer_id, count(*), sum(amount)
        FROM (
            SELECT *, time_bucket(INTERVAL 1 DAY, event_time) AS midnight,
                time_bucket(INTERVAL 2 HOURS, event_time) + (n + 1) * INTERVAL 2 HOURS AS ends
            FROM rows, range(12) AS steps(n)
        )
        WHERE ends <= midnight + INTERVAL 1 DAY AND ends > operation::TIMESTAMPTZ AND ends <= $evict
        GROUP BY midnight, ends, customer_id ORDER BY ALL
    """,
    "top_customers": """
        SELECT week, week + INTERVAL 7 DAYS AS ends,
            row_number() OVER (PARTITION BY week ORDER BY count(*) DESC, sum(amount) DESC, customer_id) AS rank,
            customer_id, count(*), sum(amount)
        FROM (SELECT *, time_bucket(INTERVAL 7 DAYS, event_time, TIMESTAMPTZ '1970-01-01 00:00+00') AS week FROM rows)
        WHERE ends > operation::TIMESTAMPTZ AND ends <= $evict
        GROUP BY week, customer_id QUALIFY rank <= 3 ORDER BY ALL
    """,
}
PAIRS = """
SELECT d.customer_id, d.transaction_id, d.event_time, d.amount, c.transaction_id, c.event_time, c.amount
FROM rows d JOIN rows c ON d.customer_id = c.customer_id AND d.type = 'Debit' AND c.type = 'Credit'
    AND c.event_time BETWEEN d.event_time - INTERVAL 1 HOUR AND d.event_time + INTERVAL 1 HOUR
ORDER BY ALL
"""


@pytest.mark.parametrize(("job", "question"), ROW_BY_ROW.items(), ids=ROW_BY_ROW)
def test_a_job_without_state_makes_of_every_row_what_duckdb_makes_of_it(feed, job, question):
    case, runs = feed(find_job(job)), disordered()
    for number, row in enumerate(rows_of(runs)):
        row["account_id"] = None if number % 11 == 0 else f"A{number * number:08}"
        row["customer_id"] = "C" * (number % 7) or None
        row["operation"] = OPERATIONS[number % len(OPERATIONS)]
        row["type"] = None if number % 23 == 0 else row["type"]
        row["amount"] = {0: Decimal("40000.00"), 1: Decimal("40000.01")}.get(number % 13, row["amount"])
    case.run_each(runs)
    assert case.rows() == ask(question, rows_of(runs))


@pytest.mark.parametrize(("job", "question"), WINDOWS.items(), ids=WINDOWS)
def test_windows_hold_the_rows_that_came_while_they_were_open(feed, job, question):
    case, batches = feed(find_job(job)), batches_of(disordered(), LATENESS)
    partly_late = sum(row["event_time"] <= batch.late - timedelta(hours=2) for batch in batches for row in batch.rows)
    assert partly_late > 5, "no row comes too late for a window and in time for another"

    case.run_each(disordered(), lateness="10 minutes")

    assert case.rows() == ask(question, with_late(batches), evict=batches[-1].evict)


@pytest.fixture
def written(feed):
    """What a job wrote over the disordered input, and how many rows Spark says that it dropped as late."""

    def work(name, columns="*"):
        case = feed(find_job(name))
        progress = case.run_each(disordered(), lateness="10 minutes")
        return case.rows(columns), dropped(progress)

    return work


def test_dedup_writes_the_first_of_each_id_that_is_not_late(written):
    kept = in_time(batches_of(disordered(), LATENESS))
    expected = ask("SELECT DISTINCT transaction_id, event_time, amount FROM rows ORDER BY ALL", kept)

    found, late = written("dedup_transactions", "transaction_id, event_time, amount")

    assert found == expected
    assert late == len(EVERY) - len(kept) > 5
    assert len(found) < len(kept), "the input holds no copy that is in time"


def test_sessions_are_those_of_rows_in_time(written):
    batches = batches_of(disordered(), LATENESS)
    found, late = written("customer_sessions")
    assert found == sessions_of(batches, timedelta(minutes=5))
    assert 0 < late <= len(EVERY) - len(in_time(batches, timedelta(minutes=5))), "copies in a batch count as one"


def test_pairs_are_all_pairs_of_rows_in_time(written):
    large = [[[row for row in batch if row["amount"] > 10_000] for batch in run] for run in disordered()]
    kept = in_time(batches_of(large, LATENESS, kinds=("Credit", "Debit")))
    found, late = written("debit_credit_pairs")
    assert found == ask(PAIRS, kept)
    assert late == sum(len(batch) for run in large for batch in run) - len(kept) > 5
