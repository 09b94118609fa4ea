"""What observation costs, and whether the budgets of the design hold: `make bench`.

Where a machine's speed would show, figures are ratios of interleaved runs in one process, with their noise floor.
`--write FILE` also writes them as a page.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from load import bench_core

ROUNDS = 5
ROWS = 4_000_000
BATCH_ROWS = 400_000
SCRAPE_SECONDS = 5.0
MANY = 50  # partitions of a source, as a large topic has


class Line(NamedTuple):
    """One row of the table; `holds` is None where there is no budget."""

    what: str
    figure: str
    budget: str
    holds: bool | None


class Runs:
    """Saturated runs of one ledger job, bare or attached, in one Spark session."""

    def __init__(self, spark: Any, folder: Path, job: str) -> None:
        self.spark, self.folder, self.job = spark, folder, job
        self.count = 0
        self.callbacks: list[float] = []

    def rows_per_second(self, attached: bool, instrumented: bool = False) -> float:
        """Wall time of ROWS rows that are all there at the start, taken in batches of BATCH_ROWS."""
        import ledgerops
        from ledgerops.jobs import find_job
        from ledgerops.jobs.sinks import ParquetSink
        from ledgerops.jobs.start import start
        from ledgerops.ledger.plan import load_plan
        from ledgerops.ledger.sources import open_source

        self.count += 1
        folder = self.folder / f"{self.job}-{self.count}"
        frame = open_source(
            self.spark,
            "transactions",
            plan=load_plan("default"),
            origin=time.time() - 10 * 86400,
            work_dir=folder,
            max_rows_per_trigger=BATCH_ROWS,
            limit=ROWS,
        )
        if instrumented:
            frame = ledgerops.instrument(frame, event_time="event_time", key="customer_id")
        with self._watched(folder) if attached else _nothing():
            began = time.perf_counter()
            query = start(
                find_job(self.job),
                {"transactions": frame},
                sink=ParquetSink(folder / "out"),
                checkpoint=folder / "checkpoint",
                available_now=True,
            )
            query.awaitTermination()
            took = time.perf_counter() - began
        return ROWS / took

    @contextmanager
    def _watched(self, folder: Path) -> Iterator[None]:
        import ledgerops
        from ledgerops.collect import listener

        original = listener.EventSink.take
        callbacks = self.callbacks

        def timed(sink: Any, kind: Any, fetch: Any) -> None:
            began = time.perf_counter()
            original(sink, kind, fetch)
            if kind == "progress":
                callbacks.append((time.perf_counter() - began) * 1000)

        listener.EventSink.take = timed  # type: ignore[method-assign]
        watch = ledgerops.attach(self.spark, port=0, recording=str(folder / "recording"))
        assert watch.url, watch.error
        stop = threading.Event()
        scraper = threading.Thread(target=_scrape, args=(f"{watch.url}/metrics", stop))
        scraper.start()
        try:
            yield
        finally:
            stop.set()
            scraper.join()
            watch.close()
            listener.EventSink.take = original  # type: ignore[method-assign]


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _scrape(url: str, stop: threading.Event) -> None:
    while not stop.wait(SCRAPE_SECONDS):
        with urllib.request.urlopen(url, timeout=10) as answer:
            answer.read()


def overhead(spark: Any, folder: Path, job: str) -> Iterator[Line]:
    """Throughput attached against bare, with the noise floor of bare against bare; callback time."""
    runs = Runs(spark, folder, job)
    for instrumented in (False, True, False, True):  # warms the JVM, the Python workers and our own code
        runs.rows_per_second(attached=True, instrumented=instrumented)
    seen: dict[str, list[float]] = {"bare": [], "bare again": [], "attached": [], "instrumented": []}
    for number in range(ROUNDS):
        order = list(seen)
        random.Random(number).shuffle(order)
        for kind in order:
            rate = runs.rows_per_second(
                attached=kind in ("attached", "instrumented"), instrumented=kind == "instrumented"
            )
            seen[kind].append(rate)
            _say(f"round {number + 1} of {ROUNDS}, {job}, {kind}: {rate:,.0f} rows/s")
    middle = {kind: statistics.median(rates) for kind, rates in seen.items()}
    noise = middle["bare again"] / middle["bare"]
    bare = statistics.median(seen["bare"] + seen["bare again"])
    ratio = middle["attached"] / bare
    yield Line(f"`{job}` saturated, bare", f"{bare:,.0f} rows/s", "", None)
    yield Line("noise floor: bare against bare", f"{noise:.3f}", "", None)
    yield Line("attached against bare, every collector, 5 s scrape", f"{ratio:.3f}", ">= 0.98", ratio >= 0.98)
    yield Line(
        "attached and instrumented (latency histogram, hot keys) against bare",
        f"{middle['instrumented'] / bare:.3f}",
        "",
        None,
    )
    callback = statistics.median(runs.callbacks)
    yield Line("callback in the listener thread, median", f"{callback:.2f} ms", "<= 1.5 ms", callback <= 1.5)


def core() -> Iterator[Line]:
    took = bench_core.worker()
    _say("worker time measured")
    yield Line(
        "worker time an event, all rules, 200 batches of history, p99",
        f"{took['p99']:.2f} ms",
        "<= 5 ms",
        took["p99"] <= 5,
    )
    many = bench_core.worker(partitions=MANY)
    yield Line(
        f"worker time an event, all rules, {MANY} source partitions, p99",
        f"{many['p99']:.2f} ms",
        "<= 5 ms",
        many["p99"] <= 5,
    )
    share = 50 * 2 * took["mean"] / 1000  # a batch is two events: it, and its tasks
    yield Line("50 queries at a batch a second, share of a core", f"{share:.1%}", "< 25 %", share < 0.25)
    for kind, (series, size, milliseconds) in bench_core.scrape().items():
        name = f"scrape, 50 queries, {series:,} series, {size / 1e6:.1f} MB, {kind}"
        yield Line(name, f"{milliseconds:.0f} ms", "<= 60 ms", milliseconds <= 60)
    grown = bench_core.memory()
    _say("memory measured")
    yield Line(
        "memory of the observer, 50 queries, an hour at a batch every 2 s",
        f"{grown:.0f} MiB",
        "<= 60 MB",
        grown * 1.048576 <= 60,
    )
    rate = bench_core.replay()
    yield Line("replay with all rules at every batch", f"{rate:,.0f} batches/s", ">= 1,000", rate >= 1000)
    hour = bench_core.diagnose_hour()
    yield Line("`ledgerops diagnose`, start to answer, an hour of one query", f"{hour:.2f} s", "< 1 s", hour < 1)
    help_ = bench_core.start_up()
    yield Line("`ledgerops --help`", f"{help_:.2f} s", "< 0.3 s", help_ < 0.3)


def source(spark: Any) -> Iterator[Line]:
    from load.bench_source import rows_per_second

    rate = rows_per_second(spark, ROWS)
    yield Line("embedded source through a windowed count", f"{rate:,.0f} rows/s", ">= 300,000", rate >= 300_000)


def session(folder: Path) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from ledgerops.jobs.start import SESSION_CONF

    builder = SparkSession.builder.master("local[2]").appName("ledgerops-bench")
    for key, value in {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        **SESSION_CONF,
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def table(lines: list[Line]) -> str:
    rows = ["| what | measured | budget | holds |", "|---|---|---|---|"]
    words = {True: "yes", False: "**no**", None: ""}
    rows += [f"| {line.what} | {line.figure} | {line.budget} | {words[line.holds]} |" for line in lines]
    return "\n".join(rows) + "\n"


PAGE = """# Performance

Measured by `make bench` on {date}: {machine}, Python {python}, Spark {spark}. The machine is shared, so
compare ratios, not rates; the noise floor is that of two groups of equal bare runs in the same interleaved series.

{table}
Overhead runs take {rows:,} rows that are all there at the start, in batches of {batch:,}, to Parquet; each kind
{rounds} times in random order, medians compared. `ledgerops.instrument` adds an aggregation over every row and is paid
only where it is asked for.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page there as well")
    parser.add_argument("--only", choices=("core", "spark"), help="one half")
    parser.add_argument("--job", default="daily_counts")
    args = parser.parse_args()
    lines: list[Line] = []
    version = "not started"
    if args.only != "core":
        with tempfile.TemporaryDirectory() as name:
            spark = session(Path(name))
            version = spark.version
            lines += overhead(spark, Path(name), args.job)
            lines += source(spark)
            spark.stop()
    if args.only != "spark":
        lines += core()
    print(table(lines))
    if args.write:
        machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
        args.write.write_text(
            PAGE.format(
                date=datetime.now(UTC).date(),
                machine=machine,
                python=platform.python_version(),
                spark=version,
                table=table(lines),
                rows=ROWS,
                batch=BATCH_ROWS,
                rounds=ROUNDS,
            )
        )
    return 0 if all(line.holds is not False for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
