"""Keeps a large cache in the driver, beside a query that removes duplicates."""

# mypy: ignore-errors
import threading
import time

import outside

opts = outside.options()
spark = outside.session("cached", opts)
rows = outside.rows(spark, opts).withWatermark("event_time", opts.delay).dropDuplicates(["id", "event_time"])
pieces = []


def fill():
    """Allocates memory in the JVM until only `heap_left` MiB are free. Runs once that value is set."""
    jvm = spark.sparkContext._jvm
    comma, text = jvm.java.util.regex.Pattern.compile(","), "text," * 250_000
    machine = jvm.java.lang.Runtime.getRuntime()
    while True:
        left = outside.now("heap_left")
        while left:
            jvm.java.lang.System.gc()
            if machine.maxMemory() - machine.totalMemory() + machine.freeMemory() < left * 2**20:
                return
            pieces.append(comma.split(text))
        time.sleep(0.2)


threading.Thread(target=fill, daemon=True).start()
outside.serve(spark, opts, lambda: outside.start(rows.writeStream.foreachBatch(outside.deliver), opts))
