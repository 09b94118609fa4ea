"""Spreads rows over regions, each of which asks a server of its own."""

import time

import outside

spark, opts = outside.application("regions")


def ask(parts):
    """Passes the rows on; partition 1 first waits for `region` seconds."""
    from pyspark import TaskContext

    if TaskContext.get().partitionId() == 1:
        time.sleep(outside.now("region"))
    yield from parts


rows = outside.rows(spark, opts)
asked = rows.repartition(6).mapInPandas(ask, rows.schema)
outside.serve(spark, opts, lambda: outside.start(asked.writeStream.format("noop"), opts))
