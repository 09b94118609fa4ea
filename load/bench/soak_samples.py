"""What a soak samples: the driver, its JVM, a scrape each second, and the recording on disk."""

from __future__ import annotations

import csv
import threading
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import psutil

from load.bench.usage import resident, spark_jvm

SCRAPE_SECONDS = 1.0
QUEUE, DROPPED = b"ledgerops_listener_queue_size ", b"ledgerops_listener_dropped_total "


@dataclass(frozen=True)
class Sample:
    """One sample. `at` is seconds since the start, memory and recording are MiB, `scrape` is ms of the last scrape."""

    at: float
    memory: float
    threads: int
    handles: int
    series: int
    recording: float
    queue: int  # the largest that a scrape has seen since the sample before
    dropped: int
    scrape: float
    queries: int
    jvm_memory: float
    jvm_threads: int
    jvm_handles: int


class Scraper:
    """Fetches /metrics each second in a thread of its own, as Prometheus might."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.scrapes = self.failed = self.series = self.dropped = self.queue = 0
        self.took = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="soak-scraper", daemon=True)

    def __enter__(self) -> Scraper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def worst_queue(self) -> int:
        """The longest since it was asked last."""
        longest, self.queue = self.queue, 0
        return longest

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = max(due + SCRAPE_SECONDS, time.monotonic())
            began = time.perf_counter()
            try:
                with urllib.request.urlopen(self.url, timeout=10) as answer:
                    body = answer.read()
            except OSError:
                self.failed += 1
                continue
            self.took = (time.perf_counter() - began) * 1000
            self.scrapes += 1
            self.series, queue, self.dropped = read(body)
            self.queue = max(self.queue, queue)


def read(body: bytes) -> tuple[int, int, int]:
    """Series of a page in Prometheus' text, the worker's queue, and the events that found it full."""
    lines = [line for line in body.splitlines() if line and not line.startswith(b"#")]
    found = {mark: sum(float(line.split()[-1]) for line in lines if line.startswith(mark)) for mark in (QUEUE, DROPPED)}
    return len(lines), int(found[QUEUE]), int(found[DROPPED])


def read_sample(at: float, scraper: Scraper, recording: Path, queries: int) -> Sample:
    """One sample of this process and its JVM. Memory and recording are in MiB; `at` is seconds since the start."""
    driver = psutil.Process()
    jvm = spark_jvm(driver)
    return Sample(
        at=round(at, 1),
        memory=round(resident(driver), 2),
        threads=driver.num_threads(),
        handles=driver.num_fds(),
        series=scraper.series,
        recording=round(size(recording), 3),
        queue=scraper.worst_queue(),
        dropped=scraper.dropped,
        scrape=round(scraper.took, 2),
        queries=queries,
        jvm_memory=round(resident(jvm), 1) if jvm else 0.0,
        jvm_threads=jvm.num_threads() if jvm else 0,
        jvm_handles=jvm.num_fds() if jvm else 0,
    )


def size(folder: Path) -> float:
    """MiB of a folder's files; one that goes meanwhile counts nothing."""
    total = 0
    for path in folder.glob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total / 2**20


def write(samples: Sequence[Sample], file: Path) -> None:
    """As CSV, a row a sample."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as out:
        rows = csv.DictWriter(out, [each.name for each in fields(Sample)])
        rows.writeheader()
        rows.writerows(map(asdict, samples))
