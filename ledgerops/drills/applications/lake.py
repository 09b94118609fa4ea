"""Appends rows to a table, or merges them into it; a second query copies the table to a third one."""

from pathlib import Path

import outside
from pyspark.sql import functions as F

spark, opts = outside.application("lake")
rows = outside.rows(spark, opts)
table = str(Path(opts.output).absolute())
if opts.parts:
    rows = rows.withColumn("part", F.col("id").cast("long") % opts.parts)
if opts.gold:  # a query that reads the table must find its columns
    spark.createDataFrame([], rows.schema).write.format(opts.format).mode("append").save(table)


def merge(batch, number):
    """Updates the row of each key in the table, or adds one."""
    newest = batch.dropDuplicates(["key"])
    newest.createOrReplaceTempView("newest")
    newest.sparkSession.sql(
        f"MERGE INTO delta.`{table}` known USING newest ON known.key = newest.key "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def begin():
    if opts.merge:
        return outside.start(rows.writeStream.foreachBatch(merge), opts)
    writer = rows.writeStream.format(opts.format).option("path", table)
    return outside.start(writer.partitionBy("part") if opts.parts else writer, opts)


def refine():
    """Starts the second query."""
    silver = spark.readStream.format(opts.format).load(table)
    return outside.start(silver.writeStream.format(opts.format).option("path", opts.gold), opts, f"{opts.name}_gold")


outside.serve(spark, opts, begin, *([refine] if opts.gold else []))
