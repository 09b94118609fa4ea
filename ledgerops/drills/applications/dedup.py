"""Removes duplicates by id. With an empty --delay it remembers every id for ever."""

import outside

spark, opts = outside.application("dedup")
rows = outside.rows(spark, opts)
if opts.delay:
    rows = rows.withWatermark("event_time", opts.delay).dropDuplicates(["id", "event_time"])
else:
    rows = rows.dropDuplicates(["id"])
outside.serve(spark, opts, lambda: outside.start(rows.writeStream.foreachBatch(outside.deliver), opts))
