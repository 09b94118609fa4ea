"""Merges the rows of two branches and counts them in windows of event time."""

import outside
from pyspark.sql import functions as F

spark, opts = outside.application("merged")
web = outside.rows(spark, opts).withColumn("branch", F.lit("web")).withWatermark("event_time", opts.delay)
shop = outside.rows(spark, opts, opts.second).withColumn("branch", F.lit("shop"))
rows = web.union(shop.withWatermark("event_time", opts.delay))
counts = rows.groupBy(F.window("event_time", "5 seconds"), "branch", "key").count()
outside.serve(spark, opts, lambda: outside.start(counts.writeStream.foreachBatch(outside.deliver), opts))
