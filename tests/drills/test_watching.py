"""What is kept of a drill's metrics: each scrape with its time, and those that failed."""

import gzip
import json
import time

import pytest

from ledgerops.drills.harness.watching import scraping
from tests.serving import Background, Quiet


class Driver(Quiet):
    """Serves the exporter and one of Spark's two pages."""

    def do_GET(self):
        found = {"/metrics": b"ledgerops_up 1\n", "/metrics/prometheus/": b"metrics_spark_x 2\n"}.get(self.path)
        self.reply(404 if found is None else 200, found or b"")


@pytest.fixture
def port():
    with Background(Driver) as server:
        yield server.server_port


def test_each_target_is_scraped_and_a_failure_is_kept_with_its_error(tmp_path, port):
    (tmp_path / "app.log").write_text(f"ledgerops: attached, metrics at http://127.0.0.1:{port}/metrics\n")
    began = time.time()
    with scraping(tmp_path, port):
        until = time.monotonic() + 60
        while not (tmp_path / "scrapes.jsonl.gz").exists() and time.monotonic() < until:
            time.sleep(0.01)

    with gzip.open(tmp_path / "scrapes.jsonl.gz", "rt") as file:
        lines = {line["job"]: line for line in map(json.loads, file)}
    assert {job: line.get("text") for job, line in lines.items()} == {
        "ledgerops": "ledgerops_up 1\n",
        "spark": "metrics_spark_x 2\n",
        "spark-executors": None,
    }
    assert lines["spark-executors"]["error"] == "HTTP Error 404: Not Found"
    assert all(began <= line["at"] <= time.time() for line in lines.values())


def test_nothing_is_scraped_of_an_application_without_an_exporter(tmp_path, port):
    (tmp_path / "app.log").write_text("the application ended\n")
    with scraping(tmp_path, port):
        pass

    assert not (tmp_path / "scrapes.jsonl.gz").exists()
