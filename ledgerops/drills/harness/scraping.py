"""Scrapes the driver of a case as Prometheus would: our exporter, and the metrics that Spark itself exports."""

import gzip
import json
import threading
import time
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

from ledgerops.drills.harness.watching import watching

FILE = "scrapes.jsonl.gz"
SCRAPE_SECONDS = 5.0  # between two scrapes, and the longest that one may take
# what an operator sets for Prometheus: the names of the metrics must not contain the random id of the application
SPARK_CONF: Mapping[str, str] = {
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.ui.prometheus.enabled": "true",
    "spark.metrics.namespace": "spark",
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
}


def scraping(folder: Path, ui_port: int) -> AbstractContextManager[None]:
    """Writes scrapes.jsonl.gz to the folder of a case, a line for each scrape: `at`, `job`, and the answer's `text` or
    the `error`. `ui_port`: of Spark's own page."""

    def watch(url: str, stopped: threading.Event) -> None:
        ui, due = f"http://127.0.0.1:{ui_port}/metrics", time.monotonic()
        targets = {"ledgerops": f"{url}/metrics", "spark": f"{ui}/prometheus/"}
        targets["spark-executors"] = f"{ui}/executors/prometheus/"
        with ThreadPoolExecutor(len(targets)) as pool, gzip.open(folder / FILE, "wt", encoding="utf-8") as file:
            while True:
                for line in pool.map(_scrape, targets, targets.values()):
                    file.write(line)
                due = max(due + SCRAPE_SECONDS, time.monotonic())
                if stopped.wait(due - time.monotonic()):
                    return

    return watching(folder, watch)


def _scrape(job: str, url: str) -> str:
    at, answer = time.time(), dict[str, str]()
    try:
        with urllib.request.urlopen(url, timeout=SCRAPE_SECONDS) as found:
            answer = {"text": found.read().decode("utf-8")}
    except (OSError, ValueError) as error:
        answer = {"error": str(error)}
    return json.dumps({"at": at, "job": job, **answer}) + "\n"
