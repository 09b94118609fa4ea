"""How fast the embedded source is: rows a second through a windowed count, and of generation alone."""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from load.bench.lines import Line, least
from load.bench.session import session, start_noop

BATCHES = 4  # after a first one that warms the JVM and the Python workers


def rows_per_second(spark: Any, rows: int = 4_000_000) -> float:
    """Rows over wall time of `BATCHES` equal batches of a count by minute, from the end of the first batch on."""
    from pyspark.sql import functions as F

    from ledgerops.ledger.plan.plan import load_plan
    from ledgerops.ledger.sources.tables import open_source

    each = rows // BATCHES
    # far enough back for the default plan's rate to have all rows due
    origin = time.time() - 2 * (BATCHES + 1) * each / 600
    frame = open_source(
        spark, plan=load_plan("default"), origin=origin, max_rows_per_trigger=each, limit=(BATCHES + 1) * each
    )
    counts = frame.withWatermark("event_time", "1 minute").groupBy(F.window("event_time", "1 minute")).count()
    with tempfile.TemporaryDirectory() as folder:
        query = start_noop(counts, Path(folder) / "checkpoint", mode="update", availableNow=True)
        query.awaitTermination()
        seconds = [p.durationMs["triggerExecution"] / 1000 for p in query.recentProgress if p.numInputRows]
    return len(seconds[1:]) * each / float(sum(seconds[1:]))


def generated_per_second(rows: int = 2_000_000) -> float:
    """Rows over wall time of generation alone, on one core."""
    from ledgerops.ledger.plan.generate import Generator
    from ledgerops.ledger.plan.plan import load_plan

    made = Generator(load_plan("default"), 0.0)
    for _ in made.batches(0, 0, 1):  # makes the tables of keys and amounts
        pass
    began = time.perf_counter()
    count = sum(batch.num_rows for batch in made.batches(0, 0, rows))
    return float(count) / (time.perf_counter() - began)


def source(say: Callable[[str], None], rows: int = 4_000_000) -> Iterator[Line]:
    """Yields the lines of the part: rows a second of generation alone, and through a windowed count of `rows` rows."""
    alone = generated_per_second()
    yield Line("generation alone, on one core", f"{alone:,.0f} rows/s")
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder))
        rate = rows_per_second(spark, rows)
        spark.stop()
    say(f"{rate:,.0f} rows/s through a windowed count")
    yield least("through a windowed count, on two cores", rate, f"{rate:,.0f} rows/s", 300_000, ">= 300,000")
