"""The driver killed in mid-run while it writes to Postgres."""

import os
import sys
from pathlib import Path

import psycopg
import pytest

from ledgerops.ledger.jobs.split_transactions import JOB
from ledgerops.ledger.sinks import PostgresSink
from ledgerops.servers.process import Process
from tests.ledger.jobs.feed import transaction
from tests.paths import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

DRIVER = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from ledgerops.ledger.sinks import PostgresSink
from ledgerops.ledger.jobs.split_transactions import JOB
from ledgerops.ledger.run.start import SESSION_CONF, start
from tests.ledger.jobs.feed import Feed

folder, url, jars = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.jars", jars)
for key, value in {"spark.sql.session.timeZone": "UTC", **SESSION_CONF}.items():
    builder = builder.config(key, value)
case = Feed(builder.getOrCreate(), JOB, Path(folder))
query = start(JOB, case.inputs(), sink=PostgresSink(url), checkpoint=case.checkpoint, trigger_seconds=0.1)
query.awaitTermination()
"""


def drive(folder: Path, url: str, jars: list[Path]) -> Process:
    return Process(
        "the driver",
        [sys.executable, "-c", DRIVER, str(folder), url, ",".join(map(str, jars))],
        folder / "driver.log",
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )


def await_batch(driver: Process, url: str, batch: int, seconds: float = 150) -> None:
    with psycopg.connect(url, autocommit=True) as connection:

        def written() -> bool:
            try:
                return (connection.execute("SELECT max(batch) FROM ledgerops_batches").fetchall()[0][0] or 0) >= batch
            except psycopg.errors.UndefinedTable:
                return False

        driver.wait_until(written, seconds)


def test_every_row_is_in_postgres_once_though_the_driver_is_killed_twice(feed, postgres, server_jars):
    schema = "killed"
    with psycopg.connect(postgres.url) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    url = f"{postgres.url}?options=-csearch_path%3D{schema}"
    case = feed(JOB)
    wanted = [[f"t{file:02}-{row:02}" for row in range(50)] for file in range(30)]
    case.add(*([transaction(i, "10:00", f"C{int(i[-2:]) % 10}") for i in batch] for batch in wanted))
    for batch in (3, 8):
        driver = drive(case.folder, url, server_jars)
        try:
            await_batch(driver, url, batch)
        finally:
            driver.kill()  # the JVM and the Python workers too

    progress = case.run(sink=PostgresSink(url))

    assert len(progress) > 10, "the input was worked off before the kill"
    with psycopg.connect(url) as connection:
        found = connection.execute('SELECT transaction_id FROM "transactions.credits" ORDER BY 1').fetchall()
        staging = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE '%staging%'"
        assert connection.execute(staging).fetchone() == (0,)
    assert found == [(i,) for batch in wanted for i in batch]
