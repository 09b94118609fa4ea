"""Jobs that write a folder for each batch."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

import pytest

from ledgerops.ledger.jobs import customer_activity, dedup_transactions, late_transactions
from ledgerops.ledger.sinks import ParquetSink
from ledgerops.ledger.sinks.committed import last_batch
from tests.ledger.jobs.feed import transaction, uncommit
from tests.ledger.jobs.oracle import ask, batches_of, disordered, rows_of

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Torn(ParquetSink):
    """Dies once, when the files of batch 1 are there and the folder has not its name yet."""

    died: list[int] = field(default_factory=list)

    def write_batch(self, job, rows, batch):
        super().write_batch(job, rows, batch)
        if batch == 1 and not self.died:
            self.died.append(batch)
            (self.folder / "batch=1").rename(self.folder / ".batch=1")
            raise RuntimeError("killed in mid-batch")


def test_a_batch_that_is_repeated_at_any_point_is_there_once(feed):
    case, (first, _) = feed(late_transactions.JOB), disordered()
    sink = Torn(case.output)
    case.add(*first[:2])
    with pytest.raises(Exception, match="killed in mid-batch"):
        case.run(sink=sink)
    assert last_batch(case.output) == 0

    case.run(sink=sink)
    before = case.rows()
    uncommit(case.checkpoint)
    case.work(*first[2:], sink=sink)

    model = batches_of([first], timedelta(minutes=1))
    expected = [(row["transaction_id"], row["event_time"] <= batch.late) for batch in model for row in batch.rows]
    assert case.rows("transaction_id, topic = 'transactions.late'") == sorted(expected)
    assert set(before) <= set(case.rows())
    assert sorted(folder.name for folder in case.output.iterdir()) == [f"batch={n}" for n in range(4)]


def test_state_goes_on_where_a_repeated_batch_of_updates_left_it(feed):
    job = replace(customer_activity.JOB, transform=partial(customer_activity.transform, least=20))
    case, (first, second) = feed(job), disordered()
    runs = [first, [*second, [transaction("last", "10:00", "C1")]]]
    case.run_each(runs, repeat=True)

    question = "SELECT customer_id, count(*), sum(amount) FROM rows GROUP BY 1 HAVING count(*) > 20 ORDER BY ALL"
    newest = {row[0]: row for row in case.rows("customer_id, transactions, amount")}  # the highest count comes last
    assert sorted(newest.values()) == ask(question, rows_of(runs))


def test_sparks_file_sink_skips_a_repeated_batch_and_keeps_its_state(feed):
    case, runs = feed(dedup_transactions.JOB), disordered()
    case.run_each(runs, repeat=True, lateness="3 days")
    assert case.rows("transaction_id") == ask("SELECT DISTINCT transaction_id FROM rows ORDER BY 1", rows_of(runs))
