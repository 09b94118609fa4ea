"""Counts the rows of each key in windows of event time and delivers the closed windows."""

import outside
from pyspark.sql import functions as F

spark, opts = outside.application("counts")
rows = outside.rows(spark, opts).withWatermark("event_time", opts.delay)
counts = rows.groupBy(F.window("event_time", "5 seconds"), "key").agg(F.count("*").alias("n"), F.sum("amount"))
outside.serve(spark, opts, lambda: outside.start(counts.writeStream.foreachBatch(outside.deliver), opts))
