"""The ledger's tables from a landing folder: JSON lines in FOLDER/TABLE/*.jsonl.

A file is taken once, when its name appears: write it under another name (or in another folder) and rename it. Spark
cannot know how many rows a file has before it reads it, so what a batch reads is bounded in files.
"""

import re
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ledgerops.errors import UserError
from ledgerops.ledger.plan.schemas import REJECTS_TABLE
from ledgerops.ledger.sources import decoding

FOLDERS = ("transactions", "customers", "ad_events")
PATTERN = "*.jsonl"
# Spark passes over files that are older than the newest one it has seen by more than this, silently; the
# default, a week, would lose what a producer hands in late. What it costs is memory: some 100 bytes for each file.
MAX_FILE_AGE = "3650d"


def tables_in(folder: Path) -> frozenset[str]:
    """The tables that the folder offers: those that have a folder. Raises UserError when there is none."""
    if not folder.is_dir():
        raise UserError(f"no landing folder {folder}; create it, with a folder for each table: {', '.join(FOLDERS)}")
    found = {name for name in FOLDERS if (folder / name).is_dir()}
    if not found:
        raise UserError(f"nothing to read in {folder}: it has none of the folders {', '.join(FOLDERS)}")
    return frozenset({*found, REJECTS_TABLE})


def open_table(
    spark: SparkSession, folder: Path, table: str, max_files_per_trigger: int | None, observation: str
) -> DataFrame:
    """A streaming DataFrame of schemas.TABLES[table]. Lines that are no row of it are counted in `observation`.

    Of the table `rejects` it gives what is a row of no table, from all folders. Its `topic` is folder and file.
    """
    read = partial(_lines, spark, folder, max_files_per_trigger)
    return decoding.open_table(read, table, FOLDERS, keyed=False, observation=observation)


def _lines(spark: SparkSession, folder: Path, max_files_per_trigger: int | None, table: str) -> DataFrame:
    options = {"lineSep": "\n", "pathGlobFilter": PATTERN, "maxFileAge": MAX_FILE_AGE}
    if max_files_per_trigger is not None:
        options["maxFilesPerTrigger"] = str(max_files_per_trigger)
    # Spark refuses a folder that is not there yet, but not a pattern that nothing matches yet
    path = f"{_literal(str(folder.resolve()))}/{{{table}}}"
    lines = spark.readStream.format("text").options(**options).load(path)
    return lines.where(F.trim("value", F.lit(" \t\r")) != "").select(
        F.col("value").cast("binary").alias("value"),
        F.lit(None).cast("binary").alias("key"),
        F.concat(F.lit(f"{table}/"), F.col("_metadata.file_name")).alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.lit(None).cast("bigint").alias("offset"),
        F.col("_metadata.file_modification_time").alias("timestamp"),
    )


def _literal(path: str) -> str:
    """A path in which no character means a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)
