"""Scores rows with a model in pandas and hands them to a sink of Spark's."""

import time

import outside
import pandas as pd
from pyspark.sql import functions as F

spark, opts = outside.application("scoring")


@F.pandas_udf("double")
def score(amount: pd.Series) -> pd.Series:
    """Standard scores of the amounts, after `row` seconds for each row."""
    time.sleep(outside.now("row") * len(amount))
    return (amount - amount.mean()) / (amount.std() + 1.0)


rows = outside.rows(spark, opts).withColumn("score", score("amount"))
outside.serve(spark, opts, lambda: outside.start(rows.writeStream.format("noop"), opts))
