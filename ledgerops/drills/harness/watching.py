"""Watches a drill from outside while it runs, each in a thread of its own: what `/diagnosis` answers and how much of
the machine is used, and what Prometheus would scrape of the driver."""

import gzip
import json
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psutil

from ledgerops.drills.harness.processes import cpu_seconds

POLL_SECONDS = 1.0
MAX_ANSWER_SECONDS = 10.0
SCRAPES_FILE = "scrapes.jsonl.gz"
SCRAPE_SECONDS = 5.0  # between two scrapes, and the longest that one may take


@contextmanager
def _watching(folder: Path, watch: Callable[[str, threading.Event], None]) -> Iterator[None]:
    """Runs `watch` in a thread, once the log of the application in `folder` names its exporter; ends with it. It is
    given the address of the exporter, and what is set at the end."""
    stopped = threading.Event()

    def work() -> None:
        while not (found := re.search(r"http://[\w.]+:\d+", (folder / "app.log").read_text("utf-8", "replace"))):
            if stopped.wait(1.0):
                return
        watch(found[0], stopped)

    thread = threading.Thread(target=work, name="watching", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()  # until all is written


def polling(folder: Path, pid: int) -> AbstractContextManager[None]:
    """Writes live.jsonl and machine.jsonl to the folder of a case, whose application is the process `pid`: a line each
    second. Of the machine: percent of all cores since the last line, in all and of the process with those below it."""
    process = psutil.Process(pid)
    psutil.cpu_percent()  # the first call only sets the beginning
    spent, last = cpu_seconds(process), time.monotonic()

    def used() -> dict[str, float]:
        nonlocal spent, last
        total, before, since = psutil.cpu_percent(), spent, last
        spent, last = cpu_seconds(process), time.monotonic()
        own = 100.0 * (spent - before) / max(0.1, last - since) / (psutil.cpu_count() or 1)
        return {"used": total, "own": round(own, 1)}

    def watch(url: str, stopped: threading.Event) -> None:
        with (folder / "live.jsonl").open("w") as live, (folder / "machine.jsonl").open("w") as machine:
            while not stopped.wait(POLL_SECONDS):
                at, answer = time.time(), dict[str, Any]()
                try:
                    answer["diagnosis"] = json.loads(_read(f"{url}/diagnosis", MAX_ANSWER_SECONDS))
                except (OSError, ValueError) as error:
                    answer["problem"] = str(error)
                live.write(json.dumps({"at": at, **answer}) + "\n")
                live.flush()
                machine.write(json.dumps({"at": at, **used()}) + "\n")

    return _watching(folder, watch)


def scraping(folder: Path, ui_port: int) -> AbstractContextManager[None]:
    """Writes SCRAPES_FILE to the folder of a case, a line for each scrape of our exporter and of the metrics that Spark
    itself exports: `at`, `job`, and the answer's `text` or the `error`. `ui_port`: of Spark's own page."""
    spark = f"http://127.0.0.1:{ui_port}/metrics"
    pages = {"spark": f"{spark}/prometheus/", "spark-executors": f"{spark}/executors/prometheus/"}

    def watch(url: str, stopped: threading.Event) -> None:
        targets, due = {"ledgerops": f"{url}/metrics", **pages}, time.monotonic()
        with ThreadPoolExecutor(len(targets)) as pool, gzip.open(folder / SCRAPES_FILE, "wt", encoding="utf-8") as file:
            while True:
                for line in pool.map(_scrape, targets, targets.values()):
                    file.write(line)
                due = max(due + SCRAPE_SECONDS, time.monotonic())
                if stopped.wait(due - time.monotonic()):
                    return

    return _watching(folder, watch)


def _scrape(job: str, url: str) -> str:
    at = time.time()
    try:
        answer = {"text": _read(url, SCRAPE_SECONDS).decode("utf-8")}
    except (OSError, ValueError) as error:
        answer = {"error": str(error)}
    return json.dumps({"at": at, "job": job, **answer}) + "\n"


def _read(url: str, seconds: float) -> bytes:
    with urllib.request.urlopen(url, timeout=seconds) as answer:
        return bytes(answer.read())
