"""Event-time latency, hot keys and late candidates, observed on the rows as they pass (Dataset.observe)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerops.errors import UserError
from ledgerops.metrics.latency import EVENT_BOUNDS, LE, SUM
from ledgerops.model.observed_metrics import HASH_LENGTH, OBSERVATION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
MAX_KEYS = 10  # of the most frequent keys of a batch
AGE = "__ledgerops_age"
TOP_KEYS_SINCE = (4, 1)  # the Spark version that brought approx_top_k


def observed(
    df: DataFrame, event_time: str, key: str | None = None, plain_keys: bool = False, name: str | None = None,
    lateness: float | None = None,
) -> DataFrame:  # fmt: skip
    """See ledgerops.instrument."""
    columns = df.columns
    for column in (event_time, key):
        if column is not None and column not in columns:
            raise UserError(f"no column {column!r} to instrument; there are {', '.join(columns)}")
    from pyspark.sql import functions as F

    # what is no time has none, and one that is far off is a large number: neither may end the query
    when = F.expr(f"try_cast({quoted(event_time)} AS TIMESTAMP)")
    seconds = (_micros(F.current_timestamp()) - _micros(when)) / 1_000_000
    age = F.col(AGE)  # null where there is no event time
    found: list[Column] = [_count(age <= bound).alias(f"{LE}{index}") for index, bound in enumerate(EVENT_BOUNDS)]
    found += [
        F.count(age).alias(f"{LE}{len(EVENT_BOUNDS)}"),
        F.sum(F.greatest(age, F.lit(0.0))).alias(SUM),  # clocks differ: a histogram's sum must not fall
        F.count(F.lit(1)).alias("rows"),
        F.max(when).alias("event_time_max"),
    ]
    if lateness is not None:
        found.append(_count(age > lateness).alias("late_candidates"))
    if key is not None:
        found.append(F.max(F.lit(key)).alias("key"))
        if version(df.sparkSession.version) >= TOP_KEYS_SINCE:
            top = F.call_function("approx_top_k", F.col(quoted(key)).cast("string"), F.lit(MAX_KEYS))
            if not plain_keys:  # ten hashes a batch and not one a row
                top = F.transform(top, hashed)
            found.append(top.alias("hot_keys"))
    aged = df.withColumn(AGE, seconds)  # Spark 3.5 refuses the time of the batch within an observation
    return aged.observe(f"{OBSERVATION}_{name}" if name else OBSERVATION, *found).drop(AGE)


def hashed(top: Column) -> Column:
    """A struct (`item`, `count`) in which `item` is the first HASH_LENGTH hex digits of the SHA-256 of the key."""
    from pyspark.sql import functions as F

    digest = F.substring(F.sha2(top["item"], 256), 1, HASH_LENGTH)
    return F.struct(digest.alias("item"), top["count"].alias("count"))


def _count(condition: Column) -> Column:
    from pyspark.sql import functions as F

    return F.count(F.when(condition, F.lit(1)))


def _micros(instant: Column) -> Column:
    from pyspark.sql import functions as F

    return F.unix_micros(instant).cast("double")


def quoted(column: str) -> str:
    """The name of a column as SQL takes it: one with a dot is no field of a struct."""
    return "`" + column.replace("`", "``") + "`"


def version(text: str) -> tuple[int, ...]:
    """The major and minor number of a version, such as (3, 5) of "3.5.1"; parts that are not numbers are left out."""
    return tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())
