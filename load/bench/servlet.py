"""What a scrape costs against Spark's own PrometheusServlet, for the same queries in the same driver.

With `spark.sql.streaming.metricsEnabled` the servlet has per query the rates, latency, watermark and state totals of
the latest batch.
"""

import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from load.bench.lines import Line, compare
from load.bench.session import session, start_noop

QUERIES = 10
SCRAPES = 100
WARM_UP_SCRAPES = 100  # of each: the JVM compiles what it serves with
PAUSE_SECONDS = 0.5  # between rounds of two scrapes: an exporter answers an address five times a second
TRIGGER = "60 seconds"  # the first batch runs at once, and then there is quiet
READY_SECONDS = 120.0
CONF = {
    "spark.ui.enabled": "true",
    "spark.ui.prometheus.enabled": "true",
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
    "spark.sql.streaming.metricsEnabled": "true",
}


class Page(NamedTuple):
    """A scraped page: ms by scrape, bytes, series, and how many of the series are of streaming queries."""

    took: list[float]
    size: int
    series: int
    of_queries: int

    @property
    def each(self) -> float:
        """Microseconds a series."""
        return statistics.median(self.took) * 1000 / self.series


def servlet(say: Callable[[str], None], queries: int = QUERIES, scrapes: int = SCRAPES) -> Iterator[Line]:
    """Yields the lines of the part: time and size of a scrape, for both endpoints, with `queries` queries."""
    import ledgerops

    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        spark = session(Path(name), CONF)
        stack.callback(spark.stop)
        watch = ledgerops.attach(spark, port=0)
        assert watch.url, watch.error
        stack.callback(watch.close)
        running = [_start(spark, Path(name), number) for number in range(queries)]
        for query in running:
            stack.callback(query.stop)
        _await(running)
        say(f"{queries} queries run")
        ours, theirs = f"{watch.url}/metrics", f"{spark.sparkContext.uiWebUrl}/metrics/prometheus/"
        pages = _interleaved(ours, theirs, scrapes)
    yield from _lines(queries, *pages)


def count(body: bytes, marks: tuple[bytes, ...]) -> tuple[int, int]:
    """Series of a page in Prometheus' text, and how many of them bear one of the marks."""
    lines = [line for line in body.splitlines() if line and not line.startswith(b"#")]
    return len(lines), sum(any(mark in line for mark in marks) for line in lines)


def _start(spark: Any, folder: Path, number: int) -> Any:
    from pyspark.sql import functions as F

    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    counts = rows.withWatermark("timestamp", "10 seconds").groupBy(F.window("timestamp", "10 seconds")).count()
    return start_noop(counts, folder / f"checkpoint-{number}", f"bench_{number:02}", processingTime=TRIGGER)


def _await(running: list[Any]) -> None:
    """Waits until each query has reported a batch with rows."""
    end = time.monotonic() + READY_SECONDS
    while not all(query.lastProgress and query.lastProgress.numInputRows for query in running):
        assert time.monotonic() < end, "the queries do not begin"
        time.sleep(0.5)


def _interleaved(ours: str, theirs: str, scrapes: int) -> tuple[Page, Page, Page]:
    """Ours, ours again, and theirs, in turn."""
    for _ in range(WARM_UP_SCRAPES):
        time.sleep(PAUSE_SECONDS)
        _fetch(ours)
        _fetch(theirs)
    bodies: list[bytes] = [b"", b"", b""]
    took: list[list[float]] = [[], [], []]
    for _ in range(scrapes):
        time.sleep(PAUSE_SECONDS)
        for place, url in enumerate((ours, ours, theirs)):
            began = time.perf_counter()
            bodies[place] = _fetch(url)
            took[place].append((time.perf_counter() - began) * 1000)
    marks = ((b'query="',), (b'query="',), (b"spark_streaming", b"spark.streaming"))
    return tuple(  # type: ignore[return-value]
        Page(times, len(body), *count(body, mark)) for times, body, mark in zip(took, bodies, marks, strict=True)
    )


def _fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        body: bytes = answer.read()
        return body


def _lines(queries: int, ours: Page, again: Page, theirs: Page) -> Iterator[Line]:
    for name, page in (("ledgerops /metrics", ours), ("Spark's PrometheusServlet", theirs)):
        yield Line(
            f"{name}, {queries} queries: a scrape",
            f"{statistics.median(page.took):.2f} ms, {page.size / 1000:.1f} kB, {page.series:,} series "
            f"({page.of_queries / queries:.0f} a query), {page.each:.1f} µs, {page.size / page.series:.0f} bytes each",
        )
    found = compare(ours.took, again.took, theirs.took)
    yield Line("a series of ours against one of Spark's: time", f"{ours.each / theirs.each:.2f}", f"{found.noise:.3f}")
