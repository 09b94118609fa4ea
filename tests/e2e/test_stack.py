"""A real run, scraped by a real Prometheus with the generated configuration: do rules load, and do panels have data?"""

import os
import re
import sys
import urllib.error

import pytest

from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.dashboards.panels import expression
from ledgerops.mixin.problems import problem_pages
from ledgerops.mixin.reference import metrics_page
from ledgerops.mixin.site import Site
from ledgerops.servers.process import Process, answers, free_port
from tests.mixin.dashboards.replayed import filled
from tests.monitoring import Prometheus
from tests.programs import python, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

JOBS = ("daily_counts", "dedup_transactions", "large_credits")
# a second stands for half a minute, so that windows fill within the test
SITE = Site(scrape_seconds=1.0, evaluation_seconds=1.0, time_scale=1 / 30)


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """A run of three jobs that has been scraped for a while; the run goes on."""
    folder = tmp_path_factory.mktemp("stack")
    port = free_port()
    options = ("--port", str(port), "--trigger", "5", "--no-view", "--out", "runs")
    command = [sys.executable, "-m", "ledgerops", "run", *JOBS, *options]
    environ = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    run = Process("ledgerops run", command, folder / "out", cwd=folder, env=environ)
    prometheus = None
    try:
        run.wait_until(lambda: answers(f"http://127.0.0.1:{port}/healthz"), 300)
        prometheus = Prometheus(folder, [f"127.0.0.1:{port}"], SITE)
        known = "ledgerops_capacity_rows_per_second or ledgerops_batches_total > 14"
        until(lambda: len(prometheus.ask(known)) >= 3, 300, "fifteen batches of each query")
        yield prometheus, run
    finally:
        if prometheus is not None:
            prometheus.close()
        run.stop(seconds=60)


def test_the_rules_are_loaded_and_evaluated_without_an_error(stack):
    prometheus, _ = stack
    groups = prometheus.get("rules")["groups"]
    assert {group["name"] for group in groups} >= {"ledgerops-symptoms", "ledgerops-freshness", "ledgerops-observer"}
    assert [rule["lastError"] for group in groups for rule in group["rules"] if rule["health"] == "err"] == []


def test_a_healthy_run_pages_nobody(stack):
    prometheus, _ = stack
    # while a busy machine has not got the time for a batch each five seconds, an alert may rightly say so
    until(lambda: prometheus.firing() == {"LedgerWatchdog"}, 240, "the watchdog alone")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.uid)
def test_every_panel_has_data_or_says_what_it_waits_for(stack, page):
    prometheus, _ = stack
    empty = []
    for row in page.rows:
        for panel in row.panels:
            found = 0
            for target in panel.targets:
                found += len(prometheus.ask(filled(expression(target, SITE)).replace("[10m]", "[20s]")))
            if not found and panel.waits is None:
                empty.append(panel.title)

    assert empty == []


def spans():
    """What stands as code in the pages of problems, and where docs/metrics.md says how to ask."""
    pages = {**problem_pages(), "metrics.md": metrics_page()}
    found = {
        span for page in pages.values() for span in re.findall(r"```[a-z]*\n(.+?)```|(?<!`)`([^`]+)`(?!`)", page, re.S)
    }
    return sorted(" ".join((block or span).split()) for block, span in found)


def test_every_query_of_the_runbooks_is_answered(stack):
    prometheus, _ = stack
    queries = [span for span in spans() if re.search(r"\bledgerops_[a-z]|^up\{|\bquery:freshness", span)]
    assert len(queries) > 100
    refused = {}
    for query in queries:
        try:
            prometheus.ask(query.replace("QUERY", JOBS[0]).replace("TOPIC", "transactions").replace("JOB", "ledgerops"))
        except urllib.error.HTTPError as error:
            refused[query] = error.read().decode()

    assert refused == {}


def test_every_command_of_the_runbooks_runs(stack, tmp_path):
    """Against the run: a place that a command names is put in, one that asks the default place is given this one."""
    prometheus, _ = stack
    exporter = prometheus.get("targets")["activeTargets"][0]["scrapeUrl"].removesuffix("/metrics")
    failed = {}
    for command in (span for span in spans() if re.match(r"ledgerops (diagnose|status|rules|render)\b", span)):
        words = command.replace("QUERY", JOBS[0]).replace("SLUG", "slow-sink").split()
        words = [exporter if word.startswith("http://") else word for word in words]
        if words == ["ledgerops", "status"]:
            words += ["--once", "--url", exporter]
        if words[1] == "diagnose" and exporter not in words:
            words += ["--from", exporter]
        done = python("-m", *words, timeout=60)
        if done.returncode not in (0, 1):
            failed[command] = done.stderr

    assert failed == {}


def test_a_run_that_is_stopped_says_so_in_its_last_scrape_and_is_not_missed(stack):
    prometheus, run = stack
    run.stop(seconds=60)

    until(lambda: prometheus.ask("max_over_time(up[10s]) == 0"), 60, "ten seconds without an answer")
    [ended] = prometheus.ask("max(last_over_time(ledgerops_query_active[10m]))")
    assert ended["value"][1] == "0"
    assert not prometheus.ask('ALERTS{alertname=~"LedgerDriverLost|LedgerExporterAbsent|LedgerTargetDown"}')
