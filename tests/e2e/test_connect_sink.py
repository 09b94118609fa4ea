"""Slow and hanging sinks of a Spark Connect application: the sink is the cause, not the cores."""

import contextlib
import json
import sys
import urllib.request
from pathlib import Path

import pyspark
import pytest

from ledgerops.servers.process import Process, answers, free_port
from tests.paths import ROOT
from tests.programs import for_spark, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
SLOW = 300.0  # seconds for what takes ten on an idle machine
QUERIES = ("orders", "payments", "refunds")
HEALTHY_BATCHES = 15  # the past that a sink's slowness is compared with
SLEEP = 8.0  # of a slow sink, in each batch
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


class Shop:
    """The application."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder

    def first(self, query: str) -> str:
        """The first cause of a query now; empty without one."""
        with urllib.request.urlopen(f"{self.url}/diagnosis", timeout=20) as answer:
            [found] = [each for each in json.load(answer)["queries"] if each["query"] == query]
        return found["root_causes"][0]["rule"] if found["root_causes"] else ""

    def healthy(self) -> bool:
        """Whether each query has ended enough batches."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        named = (line.rpartition(" ") for line in lines if line.startswith("ledgerops_batches_total{"))
        return sorted(float(value) > HEALTHY_BATCHES for _, _, value in named) == [True] * len(QUERIES)

    def fault(self, query: str, what: str) -> None:
        """Sets what the sink does wrong."""
        (self.folder / query).write_text(what)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("connect")
    grpc, ui, port = free_port(), free_port(), free_port()
    environ = for_spark()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": grpc,
        "spark.ui.port": ui,
        "spark.sql.shuffle.partitions": 1,
        "spark.python.authenticate.socketTimeout": "60s",
    }
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    submit = [Path(pyspark.__file__).parent / "bin/spark-submit", "--master", "local[4]", "--class", SERVER, *conf]
    client = [sys.executable, "-m", "tests.e2e.connect_sink_app", f"sc://127.0.0.1:{grpc}", f"http://127.0.0.1:{ui}"]
    with contextlib.ExitStack() as opened:
        server = Process("server", [*submit, "spark-internal"], folder / "server.log", cwd=ROOT, env=environ)
        opened.callback(server.kill)
        server.wait_until(lambda: answers(f"http://127.0.0.1:{ui}"), SLOW)
        app = Process("shop", [*client, str(port), folder], folder / "app.log", cwd=ROOT, env=environ)
        opened.callback(app.kill)
        found = Shop(f"http://127.0.0.1:{port}", folder)
        app.wait_until(lambda: answers(f"{found.url}/healthz"), SLOW)
        until(lambda: found.healthy(), SLOW, "a healthy past of each query")
        yield found


def test_a_sink_that_becomes_slow_is_the_cause(shop):
    shop.fault("payments", f"sleep {SLEEP:g}")
    until(lambda: shop.first("payments") == "slow-sink", SLOW, "a sink that is named")


def test_a_sink_that_hangs_is_the_cause(shop):
    shop.fault("refunds", "block")
    until(lambda: shop.first("refunds") == "query-stuck", SLOW, "a query that is stuck")
