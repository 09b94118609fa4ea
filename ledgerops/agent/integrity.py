"""The two sides of a job's books, and its conflicting rows, observed as they pass (Dataset.observe)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerops.agent.instrument import TOP_KEYS_SINCE, hashed, quoted, version
from ledgerops.errors import UserError
from ledgerops.model.observed_metrics import AMOUNT, BOOK, CONFLICTS, COUNT, IDS, ROWS, SIDES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
DECIMAL_PLACES = 2  # after the point, as money has
DECIMAL_PRECISION = 28  # Spark adds ten digits for a sum, and has 38
MAX_SAMPLE_IDS = 5  # of a batch: enough to look some up, too few to list customers


def booked(df: DataFrame, side: str, amount: str | None = None, name: str | None = None) -> DataFrame:
    """See ledgerops.book."""
    if side not in SIDES:
        raise UserError(f"no side {side!r} of a book; give in or out")
    _known(df, amount)
    from pyspark.sql import functions as F

    found = [F.count(F.lit(1)).alias(ROWS)]
    if amount is not None:
        # an amount that is not a number is left out, and a sum that is too large is unknown: neither may end the query
        value = F.expr(f"try_cast({quoted(amount)} AS DECIMAL({DECIMAL_PRECISION}, {DECIMAL_PLACES}))")
        total = F.when(F.count(value) == 0, F.lit("0")).otherwise(F.try_sum(value).cast("string"))
        found.append(total.alias(AMOUNT))
    return df.observe(f"{BOOK}_{side}_{name}" if name else f"{BOOK}_{side}", *found)


def conflicting(df: DataFrame, key: str, name: str | None = None) -> DataFrame:
    """See ledgerops.conflicts."""
    _known(df, key)
    from pyspark.sql import functions as F

    found = [F.count(F.lit(1)).alias(COUNT)]
    if version(df.sparkSession.version) >= TOP_KEYS_SINCE:
        sample = F.call_function("approx_top_k", F.col(quoted(key)).cast("string"), F.lit(MAX_SAMPLE_IDS))
        found.append(F.transform(sample, hashed).alias(IDS))
    return df.observe(f"{CONFLICTS}_{name}" if name else CONFLICTS, *found)


def _known(df: DataFrame, column: str | None) -> None:
    if column is not None and column not in df.columns:
        raise UserError(f"no column {column!r} to book; there are {', '.join(df.columns)}")
