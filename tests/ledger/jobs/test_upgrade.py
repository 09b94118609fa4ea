"""A job that was changed, started again on the checkpoint of before."""

from dataclasses import replace

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.daily_counts import JOB
from ledgerops.ledger.run.failures import incompatible
from tests.ledger.jobs.feed import transaction

pytestmark = pytest.mark.spark


def by_account(transactions, lateness):
    """Groups by a column more."""
    return (
        transactions.withWatermark("event_time", lateness)
        .groupBy(F.window("event_time", "1 day").alias("day"), "customer_id", "account_id")
        .agg(F.count("*").alias("transactions"))
        .select("customer_id", "transactions")
    )


def not_grouped(transactions, lateness):
    return transactions.select("customer_id")


def test_what_changed_in_a_job_is_told_by_name_with_the_two_ways_on(feed):
    case = feed(JOB)
    case.work([transaction("T1", "10:00")])
    told = {}
    for transform in (by_account, not_grouped):
        case.add([transaction("T2", "11:00")])
        case.job = replace(JOB, transform=transform)
        with pytest.raises(StreamingQueryException) as failed:
            case.run()
        told[transform] = incompatible(JOB.name, case.checkpoint, str(failed.value))

    begin = f"daily_counts cannot resume from {case.checkpoint}: "
    keys = "window <start timestamp, end timestamp>, customer_id string"
    ways = "restore the earlier version of the job, or start over with empty state: --fresh "
    ways += "(with Kafka also --start TIME)"
    assert told[by_account] == (
        f"{begin}the keys of its state (the columns of its grouping or join) changed since it was written "
        f"({keys}; now {keys}, account_id string); {ways}"
    )
    assert told[not_grouped] == (
        f"{begin}its stateful operators changed since it was written (stateStoreSave; now none); {ways}"
    )
