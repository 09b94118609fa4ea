"""The driver killed in mid-run, as the kernel or a power cut would, while it writes to files or to Postgres."""

import os
import sys

import psycopg
import pytest

from ledgerops.ledger.jobs import enriched_transactions, split_transactions
from ledgerops.ledger.sinks import PostgresSink
from ledgerops.ledger.sinks.committed import last_batch
from ledgerops.servers.process import Process
from tests.ledger.jobs.feed import customer, transaction
from tests.paths import ROOT
from tests.postgres import asked

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

DRIVER = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from ledgerops.ledger.jobs import find_job
from ledgerops.ledger.run.start import SESSION_CONF, start
from ledgerops.ledger.sinks import ParquetSink, PostgresSink
from tests.ledger.jobs.feed import Feed

name, folder, url, jars = sys.argv[1:]
conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC", "spark.jars": jars, **SESSION_CONF}
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(map=conf)
case = Feed(builder.getOrCreate(), find_job(name), Path(folder))
sink = PostgresSink(url) if url else ParquetSink(case.output)
start(case.job, case.inputs(), sink=sink, checkpoint=case.checkpoint, trigger_seconds=0.1).awaitTermination()
"""
IDS = [[f"t{file:02}-{row:02}" for row in range(50)] for file in range(30)]


def kill_twice(case, newest, url="", jars=()):
    """Thirty files for the job, and drivers that are killed in mid-run; `newest` is the last batch that was written."""
    case.add(*([transaction(i, "10:00", f"C{int(i[-2:]) % 10}") for i in batch] for batch in IDS))
    command = [sys.executable, "-c", DRIVER, case.job.name, case.folder, url, ",".join(map(str, jars))]
    environ = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    for batch in (3, 8):
        driver = Process("the driver", command, case.folder / "driver.log", cwd=ROOT, env=environ)
        try:
            driver.wait_until(lambda least=batch: (newest() or 0) >= least, 240)
        finally:
            driver.kill()  # the JVM and the Python workers too


def test_every_transaction_is_in_a_file_once_though_the_driver_is_killed_twice(feed):
    case = feed(enriched_transactions.JOB)
    case.add([customer(f"C{n}") for n in range(5)], name="customers")
    kill_twice(case, lambda: last_batch(case.output))
    assert last_batch(case.output) < 29, "the input was worked off before the kill"
    case.run()
    case.work([customer(f"C{n}") for n in range(5, 10)], name="customers")

    assert case.rows("transaction_id") == [(i,) for batch in IDS for i in batch]
    # a slow machine may let some wait longer than WAIT, but those whose customer was there first have not waited
    assert {row for row in case.rows("customer_id < 'C5' AS known, enriched") if row[0]} == {(True, True)}


def test_every_row_is_in_postgres_once_though_the_driver_is_killed_twice(feed, postgres, server_jars):
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA killed")
    url = f"{postgres.url}?options=-csearch_path%3Dkilled"

    def newest():
        try:
            return asked(url, "SELECT max(batch) FROM ledgerops_batches")[0][0]
        except psycopg.errors.UndefinedTable:
            return None

    case = feed(split_transactions.JOB)
    kill_twice(case, newest, url, server_jars)

    progress = case.run(sink=PostgresSink(url))

    assert len(progress) > 10, "the input was worked off before the kill"
    assert asked(url, 'SELECT transaction_id FROM "transactions.credits" ORDER BY 1') == [(i,) for b in IDS for i in b]
    staging = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE '%staging%'"
    assert asked(url, staging) == [(0,)]
