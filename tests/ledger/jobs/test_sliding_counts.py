from datetime import timedelta
from decimal import Decimal

import pytest

from ledgerops.ledger.jobs.sliding_counts import JOB
from tests.ledger.jobs.feed import instant, transaction
from tests.ledger.jobs.oracle import ask, batches_of, disordered, with_late

pytestmark = pytest.mark.spark

# each row in twelve windows, less those that were closed when it came
WINDOWS = """
SELECT start, start + INTERVAL 1 DAY AS ends, customer_id, count(*), sum(amount)
FROM (
    SELECT *, time_bucket(INTERVAL 2 HOURS, event_time) - n * INTERVAL 2 HOURS AS start
    FROM rows, range(12) AS copies(n)
)
WHERE ends > operation::TIMESTAMPTZ AND ends <= $evict GROUP BY start, customer_id ORDER BY ALL
"""


def test_counts_are_those_of_windows_that_were_open_when_their_rows_came(feed):
    case = feed(JOB)
    case.run_each(disordered(), lateness="10 minutes")

    batches = batches_of(disordered(), timedelta(minutes=10))
    assert case.rows() == ask(WINDOWS, with_late(batches), evict=batches[-1].evict)
    partly_late = sum(row["event_time"] <= batch.late - timedelta(hours=2) for batch in batches for row in batch.rows)
    assert partly_late > 5, "no row comes too late for a window and in time for another"


def test_a_transaction_counts_in_twelve_windows_and_late_only_in_the_open_ones(feed):
    case = feed(JOB)
    early = [transaction("t1", "10:00", amount=Decimal("1.25")), transaction("clock", "2024-03-02T06:00", "C2")]
    late = transaction("late", "11:59:59.999999", amount=Decimal("2.50"))
    case.run_each([[early], [[late], [transaction("end", "2024-03-09T00:00", "C2")]]], lateness="0 seconds")

    ends = [instant("12:00") + timedelta(hours=2 * n) for n in range(12)]
    closed = instant("2024-03-02T06:00")
    found = [row[1:] for row in case.rows() if row[2] == "C1"]
    assert found == [(end, "C1", *((1, Decimal("1.25")) if end <= closed else (2, Decimal("3.75")))) for end in ends]
