"""Two queries in one application: a small report, and a rebuild that computes a lot at times."""

# mypy: ignore-errors
import copy
import time

import outside

opts = outside.options()
spark = outside.session("reports", opts)
spark.conf.set("spark.sql.shuffle.partitions", "2")


def rebuild(parts):
    """Passes the rows on after `burn` seconds of computing in each partition."""
    until = time.monotonic() + outside.now("burn")
    while time.monotonic() < until:
        sum(range(1000))
    yield from parts


source = outside.rows(spark, opts)
heavy = source.repartition(4).mapInPandas(rebuild, source.schema)


def small():
    """The report's query, started."""
    return outside.start(outside.rows(spark, opts).where("amount > 5").writeStream.format("noop"), opts, "small_report")


def large():
    """The rebuild's query, started."""
    return outside.start(heavy.writeStream.format("noop"), copy.copy(opts), "nightly_rebuild")


outside.serve(spark, opts, small, large)
