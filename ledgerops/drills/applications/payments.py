"""Joins orders with their payments, which come within ten seconds."""

import outside
from pyspark.sql import functions as F

spark, opts = outside.application("payments")
orders = outside.rows(spark, opts).withWatermark("event_time", opts.delay)
payments = (
    outside.rows(spark, opts, opts.second)
    .select(F.col("id").alias("paid"), F.col("event_time").alias("paid_at"), F.col("amount").alias("sum"))
    .withWatermark("paid_at", opts.delay)
)
joined = orders.join(
    payments,
    F.expr("id = paid AND paid_at BETWEEN event_time - INTERVAL 10 SECONDS AND event_time + INTERVAL 10 SECONDS"),
)
outside.serve(spark, opts, lambda: outside.start(joined.writeStream.foreachBatch(outside.deliver), opts))
