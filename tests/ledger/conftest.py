"""The session as the jobs need it, and a feed for each case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.run.start import SESSION_CONF
from tests.ledger.jobs.feed import Feed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def job_session(spark: SparkSession) -> Iterator[SparkSession]:
    """The test session with the jobs' configuration; as it was afterwards."""
    before = {key: spark.conf.get(key, None) for key in SESSION_CONF}
    for key, value in SESSION_CONF.items():
        spark.conf.set(key, value)
    yield spark
    for key, old in before.items():
        spark.conf.unset(key) if old is None else spark.conf.set(key, old)


@pytest.fixture
def feed(job_session: SparkSession, tmp_path: Path) -> Callable[[Job], Feed]:
    return lambda job: Feed(job_session, job, tmp_path)
