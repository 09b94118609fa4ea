"""The driver killed in mid-run, as the kernel or a power cut would."""

import os
import sys
from pathlib import Path

import pytest

from ledgerops.ledger.jobs.enriched_transactions import JOB
from ledgerops.ledger.sinks.committed import last_batch
from ledgerops.servers.process import Process
from tests.ledger.jobs.feed import customer, transaction
from tests.paths import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

DRIVER = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from ledgerops.ledger.jobs.enriched_transactions import JOB
from ledgerops.ledger.sinks import ParquetSink
from ledgerops.ledger.run.start import SESSION_CONF, start
from tests.ledger.jobs.feed import Feed

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for key, value in {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC", **SESSION_CONF}.items():
    builder = builder.config(key, value)
case = Feed(builder.getOrCreate(), JOB, Path(sys.argv[1]))
sink = ParquetSink(case.output)
start(JOB, case.inputs(), sink=sink, checkpoint=case.checkpoint, trigger_seconds=0.1).awaitTermination()
"""


def drive(folder: Path) -> Process:
    return Process(
        "the driver",
        [sys.executable, "-c", DRIVER, str(folder)],
        folder / "driver.log",
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )


def await_batch(driver: Process, output: Path, batch: int, seconds: float = 150) -> None:
    driver.wait_until(lambda: (last_batch(output) or 0) >= batch, seconds)


def test_every_transaction_is_written_once_though_the_driver_is_killed_twice(feed):
    case = feed(JOB)
    case.add([customer(f"C{n}") for n in range(5)], name="customers")
    ids = [[f"t{file:02}-{row:02}" for row in range(50)] for file in range(30)]
    case.add(*([transaction(i, "10:00", f"C{int(i[-2:]) % 10}") for i in batch] for batch in ids))
    for batch in (3, 8):
        driver = drive(case.folder)
        try:
            await_batch(driver, case.output, batch)
        finally:
            driver.kill()  # the JVM and the Python workers too
    assert last_batch(case.output) < 29, "the input was worked off before the kill"
    case.run()
    case.add([customer(f"C{n}") for n in range(5, 10)], name="customers")

    case.run()

    assert case.rows("transaction_id") == [(i,) for batch in ids for i in batch]
    # a slow machine may let some wait longer than WAIT, but those whose customer was there first have not waited
    assert {row for row in case.rows("customer_id < 'C5' AS known, enriched") if row[0]} == {(True, True)}
