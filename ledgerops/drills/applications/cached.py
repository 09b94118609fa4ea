"""Keeps a large cache in the driver, beside a query that removes duplicates."""

import threading
import time

import outside

spark, opts = outside.application("cached")
rows = outside.rows(spark, opts).withWatermark("event_time", opts.delay).dropDuplicates(["id", "event_time"])
pieces = []


def fill():
    """Fills the heap once `heap_left` is set, until only so many MiB are free."""
    while not (left := outside.now("heap_left")):
        time.sleep(0.2)
    outside.fill_heap(spark, left, pieces)


threading.Thread(target=fill, daemon=True).start()
outside.serve(spark, opts, lambda: outside.start(rows.writeStream.foreachBatch(outside.deliver), opts))
