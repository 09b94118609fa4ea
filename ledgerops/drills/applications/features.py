"""Computes a feature of each row in a Python function and appends it to Parquet files."""

import time

import outside
from pyspark.sql import functions as F

spark, opts = outside.application("features")


@F.udf("double")
def feature(key, amount):
    """A number for each row, after `row` seconds. Raises ValueError for key 7 when `bad` is set."""
    time.sleep(outside.now("row"))
    if outside.now("bad") and key == "7":
        raise ValueError("card number 4111-1111-1111-1111 is bad")
    return sum(ord(letter) for letter in key) * amount


rows = outside.rows(spark, opts).withColumn("feature", feature("key", "amount"))
outside.serve(spark, opts, lambda: outside.start(rows.writeStream.format("parquet").option("path", opts.output), opts))
