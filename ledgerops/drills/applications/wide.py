"""Derives very many columns from each row; most of a batch is planning."""

import outside
from pyspark.sql import functions as F

spark, opts = outside.application("wide")
rows = outside.rows(spark, opts)
names = [f"c{number}" for number in range(opts.keys)]
rows = rows.select("*", *[(F.col("amount") * F.lit(index + 1)).alias(name) for index, name in enumerate(names)])
rows = rows.select("id", *[F.when(F.col(name) > 10, F.col(name) % 7).otherwise(-1).alias(name) for name in names])
rows = rows.select("id", *[F.coalesce(F.col(name), F.lit(0.0)).alias(name) for name in names])
outside.serve(spark, opts, lambda: outside.start(rows.writeStream.format("noop"), opts))
