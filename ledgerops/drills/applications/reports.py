"""Two queries in one application: a small report, and a rebuild that computes a lot at times."""

import copy

import outside

spark, opts = outside.application("reports")
spark.conf.set("spark.sql.shuffle.partitions", "2")
source = outside.rows(spark, opts)
heavy = source.repartition(4).mapInPandas(outside.compute, source.schema)


def small():
    """The report's query, started."""
    return outside.start(outside.rows(spark, opts).where("amount > 5").writeStream.format("noop"), opts, "small_report")


def large():
    """The rebuild's query, started."""
    return outside.start(heavy.writeStream.format("noop"), copy.copy(opts), "nightly_rebuild")


outside.serve(spark, opts, small, large)
