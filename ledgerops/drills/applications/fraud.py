"""Looks up each row's key in a table and asks a remote service about the row, which answers after --wait."""

import outside
from pyspark.sql import functions as F

spark, opts = outside.application("fraud")
known = spark.createDataFrame([(str(number), number % 7) for number in range(opts.keys)], "key STRING, risk INT")
rows = outside.rows(spark, opts).join(F.broadcast(known), "key", "left")
if opts.wait:
    rows = outside.waiting(rows, opts.wait)
outside.serve(spark, opts, lambda: outside.start(rows.writeStream.format("noop"), opts))
