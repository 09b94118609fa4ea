"""Looks up each row's key in a table and asks a remote service about the row, which answers after --wait."""

import outside
from pyspark.sql import functions as F

spark, opts = outside.application("fraud")
known = spark.createDataFrame([(str(number), number % 7) for number in range(opts.keys)], "key STRING, risk INT")
rows = outside.rows(spark, opts).join(F.broadcast(known), "key", "left")
if opts.wait:
    whole, part = divmod(round(opts.wait * 1_000_000), 1_000_000)
    rows = rows.withColumn("answer", F.expr(f"reflect('java.lang.Thread', 'sleep', {whole}L, {part})"))
outside.serve(spark, opts, lambda: outside.start(rows.writeStream.format("noop"), opts))
