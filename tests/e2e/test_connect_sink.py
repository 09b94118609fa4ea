"""Slow and hanging sinks of a Spark Connect application on a busy machine: the sink is the cause, not the cores."""

import contextlib
import json
import sys
from pathlib import Path

import pyspark
import pytest

from ledgerops.servers.process import Process, answers, free_port
from tests.paths import ROOT
from tests.programs import busy_cores, for_spark, until
from tests.serving import fetched

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
SLOW = 300.0  # seconds for what takes ten on an idle machine
QUERIES = ("orders", "payments", "invoices", "refunds")
HEALTHY_BATCHES = 15  # the past that a sink's slowness is compared with
SLEEP = 8.0  # of a slow sink, in each batch
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
NOT_THE_CAUSE = ("cpu-saturated", "noisy-neighbour")


class Shop:
    """The application; `firsts` are the first causes of each query that were seen, in their order, and `batch` how
    long a typical batch of each takes, by the newest look."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.firsts: dict[str, list[str]] = {name: [] for name in QUERIES}
        self.batch: dict[str, float] = {}

    def look(self, query: str) -> str:
        """The first cause of a query now; empty without one. Notes those of all."""
        causes = self._causes()
        for name, rules in causes.items():
            if rules and rules[0] not in self.firsts[name][-1:]:
                self.firsts[name].append(rules[0])
        return (causes.get(query) or [""])[0]

    def _causes(self) -> dict[str, list[str]]:
        queries = json.loads(fetched(f"{self.url}/diagnosis"))["queries"]
        self.batch = {each["query"]: sum(part["seconds"] for part in each["attribution"]) for each in queries}
        return {each["query"]: [cause["rule"] for cause in each["root_causes"]] for each in queries}

    def batches(self) -> dict[str, float]:
        """How many batches each query has ended."""
        lines = fetched(f"{self.url}/metrics").splitlines()
        named = (line.rpartition(" ") for line in lines if line.startswith("ledgerops_batches_total{"))
        return {labels.partition('query="')[2].partition('"')[0]: float(value) for labels, _, value in named}

    def fault(self, query: str, what: str | None) -> None:
        """Sets what the sink does wrong; None ends it."""
        (self.folder / query).write_text(what) if what else (self.folder / query).unlink()


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
    (folder / "invoices").write_text(f"sleep {SLEEP:g}")  # slow from its birth
    with contextlib.ExitStack() as opened:
        server = Process("server", [*submit, "spark-internal"], folder / "server.log", cwd=ROOT, env=environ)
        opened.callback(server.kill)
        server.wait_until(lambda: answers(f"http://127.0.0.1:{ui}"), SLOW)
        app = Process("shop", [*client, str(port), folder], folder / "app.log", cwd=ROOT, env=environ)
        opened.callback(app.kill)
        found = Shop(f"http://127.0.0.1:{port}", folder)
        app.wait_until(lambda: answers(f"{found.url}/healthz"), SLOW)
        until(lambda: found.batches().keys() >= set(QUERIES), SLOW, "a batch of each query")
        for query in ("payments", "refunds"):
            until(lambda query=query: found.batches()[query] > HEALTHY_BATCHES, SLOW, "a healthy past")
        opened.enter_context(busy_cores())
        yield found


@pytest.mark.parametrize("query", ["payments", "refunds"])
def test_a_sink_that_becomes_slow_is_the_cause(shop, query):
    began = shop.batches()[query]
    shop.fault(query, f"sleep {SLEEP:g}")
    until(lambda: shop.look(query) == "slow-sink", SLOW, "a sink that is named")
    until(lambda: shop.look(query) and shop.batches()[query] > began + 5, SLOW, "five slow batches")
    first, batch = shop.look(query), shop.batch[query]
    shop.fault(query, None)

    # where the busy cores make the rest of a batch longer than the sink does, they are the cause
    assert first == "slow-sink" or (first in NOT_THE_CAUSE and batch > 2 * SLEEP), (shop.firsts[query], batch)


@pytest.mark.parametrize("query", ["payments", "refunds"])
def test_a_sink_that_hangs_is_the_cause(shop, query):
    began = shop.batches()[query]  # its slow batches would be the usual, by which a long one is no hang yet
    until(lambda: shop.batches()[query] > began + HEALTHY_BATCHES, SLOW, "a healthy past")
    shop.fault(query, "block")
    until(lambda: shop.look(query) == "query-stuck", SLOW, "a query that is stuck")
    shop.fault(query, None)


def test_busy_cores_are_never_the_cause_of_a_sink_that_was_always_slow(shop):
    """Over Connect nothing says whose the tasks of such a sink are, and there is no past: then no cause is named."""
    assert not set(shop.firsts["invoices"]) & set(NOT_THE_CAUSE), shop.firsts["invoices"]
