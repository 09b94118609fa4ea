"""What a storm of scrapes costs a saturated job: CPU seconds for a million rows, with 200 scrapes a second and without.

Windows of one running query follow each other as bare, scraped, scraped, bare. The scrapers are a process of their own
and not counted; they are so many that those that wait for an answer do not slow the rest.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from load.bench.lines import Line, compare
from load.bench.session import session
from load.bench.usage import Meter

PER_SECOND = 200
CLIENTS = 128  # twice as many as wait for an answer at most, so that the rest is refused and goes on at its pace
ROUNDS = 4  # of a bare, two scraped and a bare window
SECONDS = 15.0  # of a window
WARM_SECONDS = 30.0
ROWS = 400_000  # of a batch
MOST = 1.02  # CPU seconds with the scrapes against those without
SCRAPER = """
import socket, sys, threading, time
port, each, clients = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
counts = {"answered": 0, "refused": 0}
def scrape(number):
    due = time.monotonic() + number * each - each * clients
    while True:
        due = max(due + each * clients, time.monotonic() - 1.0)
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            with socket.create_connection(("127.0.0.1", port), 10) as connection:
                connection.sendall(b"GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\nAccept-Encoding: gzip\\r\\n\\r\\n")
                head = connection.recv(65536)
                while connection.recv(65536):
                    pass
        except OSError:
            head = b""
        counts["answered" if head.startswith(b"HTTP/1.1 200") else "refused"] += 1
for number in range(clients):
    threading.Thread(target=scrape, args=(number,), daemon=True).start()
sys.stdin.read()
print(counts["answered"], counts["refused"])
"""


class Window(NamedTuple):
    """CPU seconds for a million rows, and how many scrapes were answered and refused."""

    cost: float
    answered: int = 0
    refused: int = 0


def scrapes(say: Callable[[str], None], rounds: int = ROUNDS, seconds: float = SECONDS) -> Iterator[Line]:
    """Yields the lines of the part."""
    import ledgerops

    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        spark = session(Path(name))
        stack.callback(spark.stop)
        watch = ledgerops.attach(spark, port=0, recording=f"{name}/recording")
        assert watch.port, watch.error
        stack.callback(watch.close)
        query = _saturated(spark, Path(name))
        stack.callback(query.stop)
        _await_batch(query, 2)
        time.sleep(WARM_SECONDS)
        seen: dict[bool, list[Window]] = {False: [], True: []}
        for number in range(rounds):
            for scraped in (False, True, True, False):
                seen[scraped].append(_window(query, seconds, watch.port if scraped else None))
            say(f"round {number + 1} of {rounds}")
    yield from _lines(seen[False], seen[True], seconds)


def _saturated(spark: Any, folder: Path) -> Any:
    from pyspark.sql import functions as F

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2).load()
    counts = rows.groupBy((F.col("value") % 1000).alias("key")).count()
    stream = counts.writeStream.format("noop").outputMode("update").queryName("saturated")
    return stream.option("checkpointLocation", str(folder / "checkpoint")).start()


def _await_batch(query: Any, number: int) -> int:
    """The first batch from `number` on that has ended."""
    while True:
        last = query.lastProgress
        if last is not None and last.batchId >= number:
            return int(last.batchId)
        assert query.isActive, query.exception()
        time.sleep(0.02)


def _window(query: Any, seconds: float, port: int | None) -> Window:
    """From the end of one batch to that of another, at least so many seconds later."""
    scraper = None
    if port is not None:
        command = [sys.executable, "-c", SCRAPER, str(port), str(1 / PER_SECOND), str(CLIENTS)]
        scraper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    first = _await_batch(query, query.lastProgress.batchId + 1)
    meter, end = Meter(), time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.1)
    last = _await_batch(query, query.lastProgress.batchId + 1)
    cost = meter.used().total / ((last - first) * ROWS / 1e6)
    printed = scraper.communicate()[0].split() if scraper is not None else []
    return Window(cost, *map(int, printed))


def _lines(bare: list[Window], scraped: list[Window], seconds: float) -> Iterator[Line]:
    costs = [each.cost for each in bare]
    pairs = zip(scraped[::2], scraped[1::2], strict=True)
    found = compare(costs[::2], costs[1::2], [(one.cost + two.cost) / 2 for one, two in pairs])
    yield Line(
        f"CPU seconds for a million rows, {PER_SECOND} scrapes a second against none",
        f"{found.ratio:.3f}",
        found.floor,
        f"<= {MOST}",
        found.at_most(MOST),
    )
    yield Line("without scrapes", f"{statistics.median(costs):.2f} s")
    sent = sum(each.answered + each.refused for each in scraped)
    rate = sum(each.answered for each in scraped) / (len(scraped) * seconds)
    yield Line("scrapes that were answered", f"{rate:.0f} a second of {sent / (len(scraped) * seconds):.0f}")
