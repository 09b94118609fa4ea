"""A real run, scraped by a real Prometheus with the generated configuration: do rules load, and do panels have data?"""

import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from ledgerops.alerts.site import Site
from ledgerops.dashboards.pages import PAGES
from ledgerops.render.prometheus import prometheus_file
from ledgerops.render.rules import rule_files
from tests.programs import answers, free_port, needed, until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

JOBS = ("daily_counts", "dedup_transactions", "large_credits")
# a second stands for half a minute, so that windows fill within the test
SITE = Site(scrape_seconds=1.0, evaluation_seconds=1.0, time_scale=1 / 30)
VARIABLES = {"$job": ".+", "$instance": ".+", "$query": ".+", "$__rate_interval": "20s", "[10m]": "[20s]"}


class Prometheus:
    """The server, asked over its API."""

    def __init__(self, folder: Path, exporter: str) -> None:
        for name, text in rule_files(SITE).items():
            (folder / "rules").mkdir(exist_ok=True)
            (folder / "rules" / name).write_text(text)
        (folder / "prometheus.yml").write_text(prometheus_file(SITE))
        (folder / "targets").mkdir()
        (folder / "targets" / "ledgerops.json").write_text(json.dumps([{"targets": [exporter]}]))
        (folder / "targets" / "alertmanager.json").write_text("[]")
        self.url = f"http://127.0.0.1:{free_port()}"
        self._log = (folder / "log").open("w")
        self._process = subprocess.Popen(
            [
                needed("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self.url.removeprefix('http://')}",
            ],
            stdout=self._log,
            stderr=self._log,
        )
        until(lambda: answers(f"{self.url}/-/ready"), 30, "Prometheus")

    def get(self, path: str, **parameters: str):
        with urllib.request.urlopen(
            f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=10
        ) as answer:
            return json.load(answer)["data"]

    def ask(self, expression: str):
        return self.get("query", query=expression)["result"]

    def firing(self) -> set[str]:
        return {each["metric"]["alertname"] for each in self.ask('ALERTS{alertstate="firing"}')}

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        self._log.close()


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """A run of three jobs that has been scraped for a while; the run goes on."""
    folder = tmp_path_factory.mktemp("stack")
    port = free_port()
    options = ("--port", str(port), "--trigger", "2", "--no-view", "--out", "runs")
    with (folder / "out").open("w") as out:
        run = subprocess.Popen(
            [sys.executable, "-m", "ledgerops", "run", *JOBS, *options],
            cwd=folder,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    prometheus = None
    try:
        until(lambda: answers(f"http://127.0.0.1:{port}/healthz"), 120, "the run")
        prometheus = Prometheus(folder, f"127.0.0.1:{port}")
        until(
            lambda: len(prometheus.ask("ledgerops_capacity_rows_per_second or ledgerops_batches_total > 14")) >= 3,
            120,
            "fifteen batches of each query",
        )
        yield prometheus, run
    finally:
        if prometheus is not None:
            prometheus.close()
        run.terminate()
        run.wait(60)


def test_the_rules_are_loaded_and_evaluated_without_an_error(stack):
    prometheus, _ = stack
    groups = prometheus.get("rules")["groups"]

    assert {group["name"] for group in groups} >= {"ledgerops-symptoms", "ledgerops-freshness", "ledgerops-observer"}
    assert [rule["lastError"] for group in groups for rule in group["rules"] if rule["health"] == "err"] == []


def test_a_healthy_run_pages_nobody(stack):
    prometheus, _ = stack
    until(lambda: "LedgerWatchdog" in prometheus.firing(), 30, "the watchdog")

    assert prometheus.firing() == {"LedgerWatchdog"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.uid)
def test_every_panel_has_data_or_says_what_it_waits_for(stack, page):
    prometheus, _ = stack
    empty = []
    for row in page.rows:
        for panel in row.panels:
            found = 0
            for target in panel.targets:
                expression = target.expr
                for name, value in VARIABLES.items():
                    expression = expression.replace(name, value)
                found += len(prometheus.ask(expression))
            if not found and panel.waits is None:
                empty.append(panel.title)

    assert empty == []


def test_a_run_that_ends_is_missed_by_its_scraper(stack):
    prometheus, run = stack
    run.terminate()
    run.wait(60)

    until(lambda: "LedgerExporterAbsent" in prometheus.firing(), 60, "the alert")
