"""Filters rows and writes them to a warehouse, batch by batch."""

import outside
from pyspark.sql import functions as F

spark, opts = outside.application("warehouse")
rows = outside.rows(spark, opts).where("amount >= 0").withColumn("tax", F.round(F.col("amount") * 0.21, 2))
outside.serve(spark, opts, lambda: outside.start(rows.writeStream.foreachBatch(outside.deliver), opts))
