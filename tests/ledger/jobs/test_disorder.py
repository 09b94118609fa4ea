"""Every job with a watermark over the same disordered input, in two runs, against the oracle."""

from datetime import timedelta

import pytest

from ledgerops.ledger.jobs import find_job
from tests.ledger.jobs.feed import dropped
from tests.ledger.jobs.oracle import ask, batches_of, disordered, in_time, rows_of, sessions_of, values

pytestmark = pytest.mark.spark

LATENESS = timedelta(minutes=10)
EVERY = rows_of(disordered())
DAYS = """
SELECT day, day + INTERVAL 1 DAY, customer_id, count(*), sum(amount)
FROM (SELECT *, time_bucket(INTERVAL 1 DAY, event_time) AS day FROM rows) WHERE day + INTERVAL 1 DAY <= $evict
GROUP BY day, customer_id ORDER BY ALL
"""
PAIRS = """
SELECT d.customer_id, d.transaction_id, d.event_time, d.amount, c.transaction_id, c.event_time, c.amount
FROM rows d JOIN rows c ON d.customer_id = c.customer_id AND d.type = 'Debit' AND c.type = 'Credit'
    AND c.event_time BETWEEN d.event_time - INTERVAL 1 HOUR AND d.event_time + INTERVAL 1 HOUR
ORDER BY ALL
"""


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


def test_daily_counts_are_those_of_rows_whose_day_was_open(written):
    batches = batches_of(disordered(), LATENESS)
    pairs = [(row, batch) for batch in batches for row in batch.rows]
    day = {"hour": 0, "minute": 0, "second": 0}
    midnight = [row for row, batch in pairs if row["event_time"].replace(**day) + timedelta(days=1) > batch.late]

    found, late = written("daily_counts")

    assert found == ask(DAYS, midnight, evict=batches[-1].evict)
    assert 0 < late <= len(EVERY) - len(midnight), "late rows of one day and customer count as one"


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


def test_large_credits_drops_no_late_row(written):
    found, late = written("large_credits", "transaction_id")
    large = [row for row in EVERY if row["type"] == "Credit" and row["amount"] > 40_000]
    assert (found, late) == (values(large, "transaction_id"), 0)
