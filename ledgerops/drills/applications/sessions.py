"""Keeps a running total for each key in Python state."""

import outside

spark, opts = outside.application("sessions")
totals = outside.rows(spark, opts).groupBy("key")
totals = totals.applyInPandasWithState(outside.total, "key STRING, n LONG", "n LONG", "update", "NoTimeout")
outside.serve(spark, opts, lambda: outside.start(totals.writeStream.outputMode("update").format("noop"), opts))
