"""Shows the whole table of totals by key after each batch, in memory."""

import outside
from pyspark.sql import functions as F

spark, opts = outside.application("totals")
totals = outside.rows(spark, opts).groupBy("key").agg(F.sum("amount").alias("total"), F.max("event_time"))


def begin():
    opts.checkpoint = f"{opts.checkpoint}-again" if hasattr(begin, "done") else opts.checkpoint
    begin.done = True
    return outside.start(totals.writeStream.outputMode("complete").format("memory"), opts)


outside.serve(spark, opts, begin)
