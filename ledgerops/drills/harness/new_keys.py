"""Rows keyed by account, of which there are few, until each row has a new key; and how many new keys were read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import ONSET_SECONDS, Effect
from ledgerops.drills.harness.target_app import TargetApp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_key(app: TargetApp, rows: DataFrame, seconds: float) -> DataFrame:
    """Adds the column `key`: the account's, and for `seconds` from the onset on each transaction's own."""
    from pyspark.sql import functions as F

    came = F.col("event_time").cast("double") - app.origin
    new = came.between(ONSET_SECONDS, ONSET_SECONDS + seconds)
    return rows.withColumn("key", F.when(new, F.col("transaction_id")).otherwise(F.col("account_id")))


def new_keys(count: int) -> Effect:
    """When that batch was done with which the query had read so many rows since the injection, a new key in each."""

    def judge(bundle: Bundle) -> float | None:
        before = 0
        for commit in bundle.commits():
            if commit.planned < bundle.times["injected"]:
                before = commit.read
                continue
            if commit.read - before >= count and commit.done is not None:
                return commit.done
        return None

    return judge
