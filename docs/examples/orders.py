"""A small streaming application. The file `delay` slows its sink down."""

import time
from pathlib import Path

from pyspark.sql import SparkSession

import ledgerops

spark = SparkSession.builder.appName("shop").master("local[2]").getOrCreate()
watch = ledgerops.attach(spark)
print("observed at", watch.url, flush=True)


def write(batch, number):
    batch.write.mode("append").parquet("orders")
    delay = Path("delay")
    if delay.exists():
        time.sleep(float(delay.read_text()))


orders = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
query = (
    orders.writeStream.queryName("orders")
    .foreachBatch(write)
    .option("checkpointLocation", "checkpoint")
    .trigger(processingTime="2 seconds")
    .start()
)
query.awaitTermination()
