"""The session as the jobs need it, and a feed for each case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledgerops.checkpoint.state_rows import temporary_conf
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.run.start import IN_MEMORY, PROVIDER, SESSION_CONF
from tests.ledger.jobs.feed import Feed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# jobs of transformWithState, which Spark has for RocksDB alone
ON_ROCKSDB = {"conflicting_transactions", "enriched_transactions", "versioned_customers"}


@pytest.fixture
def job_session(spark: SparkSession) -> Iterator[SparkSession]:
    """The test session with the jobs' configuration; as it was afterwards."""
    with temporary_conf(spark, SESSION_CONF):
        yield spark


@pytest.fixture
def feed(job_session: SparkSession, tmp_path: Path) -> Callable[[Job], Feed]:
    """Makes the feed of a job, whose state is in the memory where it may be: that of RocksDB, which a run uses for
    most jobs, takes longer to open and to save, and is tried with every kind of state in tests/checkpoint."""

    def make(job: Job) -> Feed:
        job_session.conf.set(PROVIDER, SESSION_CONF[PROVIDER] if job.name in ON_ROCKSDB else IN_MEMORY)
        return Feed(job_session, job, tmp_path)

    return make
