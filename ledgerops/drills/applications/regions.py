"""Spreads rows over regions, each of which asks a server of its own."""

import outside

spark, opts = outside.application("regions")
rows = outside.rows(spark, opts)
asked = rows.repartition(6).mapInPandas(outside.ask, rows.schema)
outside.serve(spark, opts, lambda: outside.start(asked.writeStream.format("noop"), opts))
