"""What a storm of scrapes costs a saturated job: 200 scrapes a second.

The CPU time of the exporter's own threads over a long window. The scrapers are a process of their own and not counted.

    python -m load.bench.scrapes --storm 3600

runs it alone, with a storm of so many seconds, and keeps the figures like `python -m load.bench --only scrapes`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ledgerops.agent.exporter import Exporter
from ledgerops.common.http_server import Server
from load.bench.lines import KEPT, NO, Line, Measured, limit, machine, say, table
from load.bench.session import session
from load.bench.usage import Meter

SCRAPES_PER_SECOND = 200
CLIENTS = 20  # of one address; at a time the exporter serves 24
WINDOW_SECONDS = 30.0  # of the window without scrapes
STORM_SECONDS = 300.0  # of the window with them
WARM_UP_SECONDS = 30.0
BATCH_ROWS = 400_000  # of a batch
MAX_CPU_SECONDS = 0.08  # in a second
SCRAPER = """
import itertools, socket, sys, threading, time
port, each, clients = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
counts, turns, began = {"answered": 0, "refused": 0}, itertools.count(), time.monotonic()
def scrape():
    while True:  # whoever is free takes the next turn, so that those that wait for an answer slow no other
        time.sleep(max(0.0, began + next(turns) * each - time.monotonic()))
        try:
            with socket.create_connection(("127.0.0.1", port), 10) as connection:
                connection.sendall(b"GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\nAccept-Encoding: gzip\\r\\n\\r\\n")
                head = connection.recv(65536)
                while connection.recv(65536):
                    pass
        except OSError:
            head = b""
        counts["answered" if head.startswith(b"HTTP/1.1 200") else "refused"] += 1
for _ in range(clients):
    threading.Thread(target=scrape, daemon=True).start()
sys.stdin.read()
print(counts["answered"], counts["refused"])
"""


class ExporterMeter:
    """CPU that an exporter's threads use from now on: the one that accepts, and those that answer.

    What other threads of this process use is not in it, unlike in the process's time less theirs.
    """

    def __init__(self, exporter: Exporter) -> None:
        self._clock = time.pthread_getcpuclockid(exporter._thread.ident or 0)
        self._began = time.clock_gettime(self._clock)
        self._threads: dict[int, tuple[float, float]] = {}  # by thread: at its first request, and at its last answer
        usual = Server.handle_accepted

        def handle(request: Any, address: Any) -> None:
            first, _ = self._threads.get(threading.get_ident(), (time.thread_time(), 0.0))
            try:
                usual(exporter._server, request, address)
            finally:
                self._threads[threading.get_ident()] = first, time.thread_time()

        exporter._server.handle_accepted = handle  # type: ignore[assignment,method-assign]

    def used(self) -> float:
        """CPU seconds since the meter was created; the latest meter of an exporter gets those of its requests."""
        answering = sum(last - first for first, last in list(self._threads.values()))
        return time.clock_gettime(self._clock) - self._began + answering


class Window(NamedTuple):
    """CPU seconds in a second of the exporter's threads and of the rest of the job, and scrapes."""

    exporter: float
    job: float
    load: float  # the system's load average of the last minutes at the end
    answered: int = 0
    refused: int = 0


def scrapes(
    say: Callable[[str], None], seconds: float = WINDOW_SECONDS, storm_seconds: float = STORM_SECONDS
) -> Iterator[Line]:
    """Yields the lines of the part."""
    import ledgerops

    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        spark = session(Path(name))
        stack.callback(spark.stop)
        watch = ledgerops.attach(spark, port=0, recording=f"{name}/recording")
        assert watch.port, watch.error
        exporter = watch._hub.exporter  # type: ignore[attr-defined]
        stack.callback(watch.close)
        query = _saturated(spark, Path(name))
        stack.callback(query.stop)
        _await_batch(query, 2)
        time.sleep(WARM_UP_SECONDS)
        bare = _window(seconds, exporter, scraped=False)
        say(f"{storm_seconds:.0f} s with {SCRAPES_PER_SECOND} scrapes a second")
        storm = _window(storm_seconds, exporter, scraped=True)
    yield from _lines(bare, storm, storm_seconds)


def _saturated(spark: Any, folder: Path) -> Any:
    from pyspark.sql import functions as F

    rows = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", BATCH_ROWS).option("numPartitions", 2).load()
    )
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


def _window(seconds: float, exporter: Exporter, scraped: bool) -> Window:
    scraper = None
    if scraped:
        command = [sys.executable, "-c", SCRAPER, str(exporter.port), str(1 / SCRAPES_PER_SECOND), str(CLIENTS)]
        scraper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    meter, ours, began = Meter(), ExporterMeter(exporter), time.monotonic()
    time.sleep(seconds)
    total, used, took = meter.used().total, ours.used(), time.monotonic() - began
    printed = scraper.communicate()[0].split() if scraper is not None else []
    return Window(used / took, (total - used) / took, os.getloadavg()[2], *map(int, printed))


def _lines(bare: Window, storm: Window, seconds: float) -> Iterator[Line]:
    yield limit(
        f"the exporter's threads with {SCRAPES_PER_SECOND} scrapes a second: CPU seconds in a second",
        storm.exporter,
        f"{storm.exporter * 1000:.1f} ms",
        MAX_CPU_SECONDS,
        f"<= {MAX_CPU_SECONDS * 1000:.0f} ms",
    )
    yield Line("the same without scrapes", f"{bare.exporter * 1000:.1f} ms")
    yield Line("the rest of the job in the storm, likewise", f"{storm.job:.2f} s")
    yield Line("load average of the machine, of 15 minutes, at the end of the storm", f"{storm.load:.1f}")
    sent = storm.answered + storm.refused
    yield Line(f"scrapes in these {seconds:.0f} s", f"{sent:,}, of which {storm.answered:,} were answered")


def main() -> int:
    """Measures with a storm of any length and keeps the figures. Returns 0 within the budget, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--storm", type=float, default=STORM_SECONDS, metavar="SECONDS", help="default %(default)g")
    parser.add_argument(
        "--kept", type=Path, default=KEPT, metavar="FOLDER", help="of the figures (default %(default)s)"
    )
    args = parser.parse_args()
    began, at = time.monotonic(), f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    lines = list(scrapes(say, storm_seconds=args.storm))
    Measured("scrapes", at, round(time.monotonic() - began, 1), machine(), lines).write(args.kept)
    print(table(lines))
    return 1 if any(line.holds == NO for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
