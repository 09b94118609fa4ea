"""What is pushed, at real receivers: Prometheus' own OTLP endpoint, and an OpenTelemetry Collector."""

import json
import re
import sys
import time
from pathlib import Path

import pytest

from ledgerops.agent import otlp_receiver
from ledgerops.agent.attach import Hub
from ledgerops.agent.otlp_receiver import Receiver
from ledgerops.agent.push import CLOSING_SECONDS, Pusher
from ledgerops.config import Config
from ledgerops.metrics import METRICS
from ledgerops.metrics.model import HistogramTotal
from ledgerops.metrics.pressure import BACKLOG
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.dashboards.panels import expression, lettered
from ledgerops.mixin.site import Site
from ledgerops.model.recording import read
from ledgerops.model.spark_progress import format_instant, parse_instant
from ledgerops.runtime.family import Family
from ledgerops.runtime.otlp import MetricsEncoder
from ledgerops.runtime.snapshot import Published
from ledgerops.servers.process import Process, free_port
from tests.e2e.bad_receivers import AWAY_SECONDS, RECEIVERS
from tests.mixin.dashboards.replayed import DRILLS, filled
from tests.monitoring import Prometheus
from tests.otlp_receiver import OtlpReceiver
from tests.paths import ROOT
from tests.programs import SLACK_SECONDS, finished, for_spark, needed, skip_without_flag, until

pytestmark = pytest.mark.timeout(600)
SITE = Site(scrape_seconds=1.0, evaluation_seconds=1.0)
LIVE_SECONDS = 40.0  # of a recording, at its own pace
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
AGES = 6.0  # seconds by which two readings of an age may differ: two scrapes, and an evaluation of the rules
ALIKE = 0.1  # of two readings of a rate: their windows begin with different samples


def replay_live(hub: Hub, drill: str, seconds: float) -> None:
    """The beginning of a recording, as if it happened now."""
    first, began = None, time.time()
    for seen in read(DRILLS / drill / "recording"):
        first = seen.at if first is None else first
        if seen.at - first > seconds:
            return
        shift = began - first
        data = INSTANT.sub(lambda found, by=shift: format_instant(parse_instant(found[0]) + by), json.dumps(seen.data))
        time.sleep(max(0.0, seen.at + shift - time.time()))
        hub.queue.put(seen.kind, data, seen.query)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Prometheus that scraped a driver, and Prometheus that was pushed to by the same driver."""
    folder = tmp_path_factory.mktemp("otlp")
    skip_without_flag("prometheus", "web.enable-otlp-receiver")
    takes = Prometheus(folder / "takes", [], SITE, flag="web.enable-otlp-receiver")
    hub = Hub(Config(port=0, app="shop", otlp_endpoint=f"{takes.url}/api/v1/otlp", otlp_interval=1.0))
    pulls = Prometheus(folder / "pulls", [f"127.0.0.1:{hub.exporter.port}"], SITE)
    hub.start()
    try:
        replay_live(hub, "overload", LIVE_SECONDS)
        time.sleep(5.0)  # both have the last values, which now stand still
        yield pulls, takes, hub
    finally:
        hub.close()
        pulls.close()
        takes.close()


def series(prometheus: Prometheus, text: str, at: float) -> dict[tuple, float]:
    """The answer by its labels, without that of the driver's address, which scraping and pushing name differently, and
    with the bounds of buckets as numbers: a receiver writes 600 where a scrape has 600.0."""
    found = prometheus.get("query", query=text, time=f"{at}")["result"]
    return {
        tuple(
            sorted(
                (name, f"{float(label):g}" if name == "le" else label)
                for name, label in each["metric"].items()
                if name != "instance"
            )
        ): float(each["value"][1])
        for each in found
    }


HISTOGRAM = ("_bucket", "_count", "_sum")
OWN = re.compile(r"ledgerops_(otlp|scrape|process|host|worker|callback|executor)")  # change between two readings


def test_every_family_arrives_with_its_name_labels_and_value(both):
    pulls, takes, _ = both
    at = time.time()
    text = '{__name__=~"ledgerops_.+", job="ledgerops"}'
    scraped, pushed = series(pulls, text, at), series(takes, text, at)

    def kept(found):
        return {labels: value for labels, value in found.items() if not OWN.match(dict(labels)["__name__"])}

    assert len({dict(labels)["__name__"] for labels in kept(scraped)}) > 30
    assert kept(scraped).keys() == kept(pushed).keys()
    different = {
        labels: (value, pushed[labels])
        for labels, value in kept(scraped).items()
        if abs(value - pushed[labels]) > (AGES if dict(labels)["__name__"].endswith("seconds") else 1e-9)
    }
    assert different == {}


def test_no_name_of_the_catalogue_is_translated(both):
    """Prometheus adds a unit or `_total` to the names of OTLP that lack it."""
    _, takes, _ = both
    receiver = Receiver(Config(otlp_endpoint=f"{takes.url}/api/v1/otlp"))
    encoder = MetricsEncoder({"service.name": "names"}, time.time() - 60)
    families = [
        Published(
            metric,
            [((), Family(metric, histogram=HistogramTotal(metric.bounds or ())))]
            if metric.kind == "histogram"
            else [((), Family(metric, ((("x",) * len(metric.labels), 1.0),)))],
        )
        for metric in METRICS
    ]
    for points in encoder.batches(families, time.time()):
        assert receiver.post("metrics", encoder.request(points)) == 0
    wanted = {
        (metric.name, part) for metric in METRICS for part in (HISTOGRAM if metric.kind == "histogram" else ("",))
    }
    names = {each["metric"]["__name__"] for each in takes.ask('{__name__=~"ledgerops_.+", job="names"}')}

    assert names == {f"{name}{part}" for name, part in wanted}


def test_the_fleet_pages_queries_are_answered_alike(both):
    pulls, takes, _ = both
    at, compared, different = time.time(), 0, []
    [fleet] = [page for page in PAGES if page.uid == "ledgerops-fleet"]
    for panel in (panel for row in fleet.rows for panel in row.panels):
        for _, target in lettered(panel):
            text = filled(expression(target, SITE), __rate_interval="30s")
            if "up{" in text or "ALERTS" in text:
                continue  # of scraping itself; a receiver has no targets
            scraped, pushed = series(pulls, text, at), series(takes, text, at)
            compared += len(scraped)
            for labels in scraped.keys() | pushed.keys():
                one, other = scraped.get(labels), pushed.get(labels)
                if one is None or other is None or abs(one - other) > max(AGES, ALIKE * abs(one)):
                    different.append((panel.title, text, labels, one, other))
    print(f"{compared} values of the fleet page compared")
    assert compared >= 10
    assert different == []


def test_a_series_that_ends_vanishes_at_once(both):
    _, takes, hub = both
    lag = 'ledgerops_source_backlog_offsets{job="ledgerops"}'
    assert takes.ask(lag)
    [state] = hub.registry.queries.values()
    ended = {"id": state.history.query_id, "runId": state.history.run_id, "exception": None}
    hub.queue.put("terminated", json.dumps(ended), state.history.query)

    until(lambda: not takes.ask(lag), 60)
    assert takes.ask("ledgerops_batches_total")  # a total stays for a while


@pytest.mark.parametrize("encoding", ["json", "protobuf"])
def test_a_collector_takes_metrics_and_root_causes(tmp_path, encoding):
    port = free_port()
    config = (ROOT / "tests/e2e/collector.yaml").read_text().replace("4318", str(port))
    (tmp_path / "collector.yaml").write_text(config)
    command = [needed("otelcol", "otelcol-contrib", packaged=False), "--config", tmp_path / "collector.yaml"]
    collector = Process("the collector", command, tmp_path / "log")
    collector.wait_until(lambda: "Everything is ready" in (tmp_path / "log").read_text(), 60)
    hub = Hub(
        Config(port=0, app="shop", otlp_endpoint=f"http://127.0.0.1:{port}", otlp_encoding=encoding, otlp_interval=1.0)
    )
    hub.start()
    try:
        for seen in read(DRILLS / "crash" / "recording"):
            hub.queue.put(seen.kind, json.dumps(seen.data), seen.query)
        until(lambda: hub.stats.exported["logs"], 60)
    finally:
        hub.close()
        collector.stop()
    log = (tmp_path / "log").read_text()
    assert "Name: ledgerops_batches_total" in log
    assert re.search(r"DataType: Sum\n.*IsMonotonic: true\n.*AggregationTemporality: Cumulative", log)
    assert re.search(r"-> rule: Str\(query-failed\)\n.*-> state: Str\(began\)", log)
    assert sum(hub.stats.not_exported.values()) == 0


APP = """
import sys, time
from pyspark.sql import SparkSession
import ledgerops

spark = (
    SparkSession.builder.master("local[2]").appName("nightly").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2").getOrCreate()
)
ledgerops.attach(spark, port=0, otlp_endpoint=sys.argv[2] or None, otlp_interval=3600)
rows = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(sys.argv[1] + "/in")
query = (
    rows.writeStream.queryName("nightly").format("parquet").option("path", sys.argv[1] + "/out")
    .option("checkpointLocation", sys.argv[1] + "/checkpoint").trigger(availableNow=True).start()
)
query.awaitTermination()
print("batches", query.lastProgress["batchId"] + 1, flush=True)
"""
FILES = 12


def run_nightly(folder: Path, endpoint: str) -> tuple[int, float]:
    """The batches of an availableNow query, and how long its process lived (seconds)."""
    (folder / "in").mkdir(parents=True)
    for number in range(FILES):
        (folder / "in" / f"{number}.json").write_text("\n".join(f'{{"id": {row}}}' for row in range(100)))
    began = time.monotonic()
    done = finished(sys.executable, "-c", APP, folder, endpoint, cwd=ROOT, env=for_spark())
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1]), time.monotonic() - began


@pytest.mark.spark
def test_the_last_batch_of_a_query_of_seconds_arrives(tmp_path):
    receiver = OtlpReceiver()
    try:
        batches, seconds = run_nightly(tmp_path, receiver.url)
    finally:
        receiver.close()
    [point] = receiver.metrics()["ledgerops_batches_total"]["sum"]["dataPoints"]
    [rows] = receiver.metrics()["ledgerops_input_rows_total"]["sum"]["dataPoints"]

    print(f"a process of {seconds:.1f} s, {batches} batches, {len(receiver.got)} exports")
    assert (point["asDouble"], batches) == (FILES, FILES)
    assert rows["asDouble"] == 100 * FILES


INTERVAL, WATCHED_SECONDS = 0.2, 2.0
TOOK = {"good", "away"}  # the receivers that take something in the end


@pytest.mark.parametrize("name", RECEIVERS)
def test_a_bad_receiver_is_not_asked_more_often_and_what_it_does_not_take_is_counted(name, monkeypatch):
    if name not in TOOK:
        monkeypatch.setattr(otlp_receiver, "REQUEST_SECONDS", 1.0)
    series = tuple((("t", str(number)), float(number)) for number in range(500))
    families = [Published(BACKLOG, [((("query", "q"),), Family(BACKLOG, series))])]
    stats, exports = SelfStats(), list[float]()

    def published():
        exports.append(time.perf_counter())
        return families

    with RECEIVERS[name]() as endpoint:
        pusher = Pusher(Config(otlp_endpoint=endpoint, otlp_interval=INTERVAL), published, stats, "host:1")
        began = time.perf_counter()
        pusher.start()
        time.sleep(WATCHED_SECONDS if name != "away" else AWAY_SECONDS + WATCHED_SECONDS)
        tried, watched = len(exports), time.perf_counter() - began
        closing = time.perf_counter()
        pusher.close()
        closing = time.perf_counter() - closing

    assert 1 <= tried <= watched / (INTERVAL / 2) + 1  # a pause after a failure is half an interval at least
    assert closing < CLOSING_SECONDS + SLACK_SECONDS
    assert (stats.exported["metrics"] > 0) == (name in TOOK)
    assert (sum(stats.not_exported.values()) > 0) == (name != "good")
