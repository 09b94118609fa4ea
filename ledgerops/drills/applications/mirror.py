"""Copies rows to another topic, or to Parquet files where they do not come from a topic."""

import outside
from pyspark.sql import functions as F

spark, opts = outside.application("mirror")
rows = outside.rows(spark, opts)


def begin():
    if opts.source == "kafka":
        writer = rows.select(F.to_json(F.struct("*")).alias("value")).writeStream.format("kafka")
        writer = writer.option("kafka.bootstrap.servers", opts.servers).option("topic", "mirrored")
    else:
        writer = rows.writeStream.format("parquet").option("path", opts.output)
    return outside.start(writer, opts)


outside.serve(spark, opts, begin)
