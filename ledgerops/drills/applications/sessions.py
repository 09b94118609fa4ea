"""Keeps a running total for each key in Python state."""

# mypy: ignore-errors
import time

import outside
import pandas as pd

opts = outside.options()
spark = outside.session("sessions", opts)


def total(key, parts, state):
    """Yields the number of rows seen so far for a key, after `row` seconds for each new row."""
    count = sum(len(part) for part in parts)
    time.sleep(outside.now("row") * count)
    seen = count + (state.get[0] if state.exists else 0)
    state.update((seen,))
    yield pd.DataFrame({"key": [key[0]], "n": [seen]})


totals = (
    outside.rows(spark, opts)
    .groupBy("key")
    .applyInPandasWithState(total, "key STRING, n LONG", "n LONG", "update", "NoTimeout")
)
outside.serve(spark, opts, lambda: outside.start(totals.writeStream.outputMode("update").format("noop"), opts))
