"""The ledger's streams as Spark DataFrames: what the jobs read."""

from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from ledgerops.ledger.plan.generate import customer_ids
from ledgerops.ledger.plan.plan import LoadPlan
from ledgerops.ledger.sources import customers, replay
from ledgerops.ledger.sources.arrow_file import Prepared
from ledgerops.ledger.sources.spark_source import register

Table = Literal["transactions", "customers", "ad_events"]

REPLAY_RATE = 500.0  # rows a second: the 49,102 real transactions in 98 s
ARRIVAL_SECONDS = 60.0  # in which all customers arrive: long enough for the first transactions to have to wait


def open_source(
    spark: SparkSession,
    table: Table = "transactions",
    *,
    plan: LoadPlan | None = None,
    data: Path | None = None,
    work_dir: Path | None = None,
    origin: float,
    rate: float | None = None,
    max_rows_per_trigger: int | None = None,
    limit: int | None = None,
) -> DataFrame:
    """A streaming DataFrame of schemas.TABLES[table]: of a plan, or a replay of the files in the folder `data`.

    Ad events are made of the transactions, one of each.
    `origin` (seconds since the epoch) is when the clock of plan or replay stood at zero: keep it with the checkpoint
    and give the same one at a restart. `rate` (rows a second, 0 = all at once): of a replay (default 500), or of
    arriving customers (default: all within a minute). `limit`: rows in all. `work_dir`: where files and customers are
    prepared; refused rows of a CSV are in its rejects.jsonl. Raises UserError for a missing file, before any query
    starts.
    """
    options = {"origin": repr(float(origin)), "table": table}
    for name, value in (("maxRowsPerTrigger", max_rows_per_trigger), ("limit", limit)):
        if value is not None:
            options[name] = str(value)
    if plan is not None and table != "customers":
        options["plan"] = plan.text
    else:
        prepared = prepare(table, plan, data, work_dir)
        if rate is None:
            rate = prepared.rows / ARRIVAL_SECONDS if table == "customers" else REPLAY_RATE
        options |= {"path": str(prepared.path.resolve()), "rate": repr(float(rate))}
    register(spark)
    return spark.readStream.format("ledger").options(**options).load()


def prepare(table: Table, plan: LoadPlan | None, data: Path | None, work_dir: Path | None) -> Prepared:
    """The file in `work_dir` from which a plan's customers, or a replay of `data`, are read.

    Raises UserError for a missing file.
    """
    assert work_dir is not None, f"no folder to prepare the {table} in"
    if plan is not None:
        return customers.prepare_generated(customer_ids(plan.all_keys), work_dir, plan.seed)
    assert data is not None, "neither a plan nor a folder to replay"
    if table == "customers":
        return customers.prepare_customers(data / "customers.csv", work_dir)
    return replay.prepare(data / "transactions.csv", work_dir)
