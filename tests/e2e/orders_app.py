"""Run as a program: an application whose only query is named orders, attached under a name of its own.

arguments: the application's name, the file that its exporter's address is written to, and a file: once that exists, the
query fails.
"""

import sys
import time
from pathlib import Path


def main() -> None:
    app, address, broken = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    from pyspark.sql import SparkSession

    import ledgerops

    builder = SparkSession.builder.master("local[1]").appName(app).config("spark.driver.memory", "512m")
    spark = builder.config("spark.ui.port", "0").config("spark.sql.shuffle.partitions", "1").getOrCreate()
    watch = ledgerops.attach(spark, port=0)

    def write(batch: object, number: int) -> None:
        if broken.exists():
            raise ValueError("no such currency: ***")

    rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    rows.writeStream.foreachBatch(write).queryName("orders").trigger(processingTime="1 second").start()
    address.with_suffix(".part").write_text(str(watch.url).removeprefix("http://"))
    address.with_suffix(".part").rename(address)
    while True:  # as a service does: its end is the test's
        time.sleep(60)


if __name__ == "__main__":
    main()
