"""The files of the guides to other systems, as the pages show them, with other addresses."""

import json
import re

import pytest
import yaml

from ledgerops.agent.attach import Hub
from ledgerops.config import Config
from ledgerops.mixin.site import Site
from ledgerops.servers.process import Process, free_port
from tests.build import spark_json
from tests.monitoring import Prometheus
from tests.paths import ROOT
from tests.programs import needed, skip_without_flag, until

pytestmark = pytest.mark.timeout(300)
SITE = Site(scrape_seconds=1.0, evaluation_seconds=1.0)
ASKED = 'ledgerops_batches_total{job="ledgerops", query="daily_counts"}'


def block(page, kind="yaml"):
    """The only file of that kind on a page."""
    [found] = re.findall(rf"```{kind}\n(.+?)```", (ROOT / "docs/guides" / page).read_text("utf-8"), re.DOTALL)
    return found


@pytest.fixture
def driver():
    hub = Hub(Config(port=0, app="shop"))
    hub.start()
    hub.queue.put("progress", json.dumps(spark_json()))
    yield f"127.0.0.1:{hub.exporter.port}"
    hub.close()


def prometheus(folder, flag):
    """One that takes what is sent to it, and scrapes nothing."""
    skip_without_flag("prometheus", flag)
    return Prometheus(folder / "prometheus", [], SITE, flag=flag)


def sends(command, folder, taking):
    """What the command starts sends the metrics of the driver to this Prometheus."""
    sender = Process("the sender", command, folder / "log")
    try:
        [found] = until(lambda: taking.ask(ASKED), 60, "the metrics")
        assert (found["value"][1], found["metric"]["app"]) == ("1", "shop")
    finally:
        sender.stop()
        taking.close()


def test_a_collector_passes_on_what_it_scrapes(driver, tmp_path):
    otelcol = needed("otelcol", "otelcol-contrib", packaged=False)
    config = yaml.safe_load(block("opentelemetry-collector.md"))
    scrape = config["receivers"]["prometheus"]["config"]["scrape_configs"][0]
    scrape |= {"static_configs": [{"targets": [driver]}], "scrape_interval": "1s"}
    config["receivers"]["otlp"]["protocols"]["http"]["endpoint"] = f"127.0.0.1:{free_port()}"
    taking = prometheus(tmp_path, "web.enable-otlp-receiver")
    config["exporters"]["otlp_http"]["endpoint"] = f"{taking.url}/api/v1/otlp"
    config["service"]["telemetry"] = {"metrics": {"level": "none"}}
    (tmp_path / "collector.yaml").write_text(yaml.safe_dump(config))
    sends([otelcol, "--config", tmp_path / "collector.yaml"], tmp_path, taking)


def test_an_agent_writes_to_a_remote_prometheus(driver, tmp_path):
    skip_without_flag("prometheus", "--[no-]agent")
    config = yaml.safe_load(block("remote-write.md"))
    config["global"]["scrape_interval"] = "1s"
    config["scrape_configs"][0]["static_configs"] = [{"targets": [driver]}]
    taking = prometheus(tmp_path, "web.enable-remote-write-receiver")
    [target] = config["remote_write"]
    del target["basic_auth"]
    target["url"] = f"{taking.url}/api/v1/write"
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(config))
    command = [
        needed("prometheus"), "--agent", f"--config.file={tmp_path / 'agent.yaml'}",
        f"--storage.agent.path={tmp_path / 'agent'}", f"--web.listen-address=127.0.0.1:{free_port()}",
    ]  # fmt: skip
    sends(command, tmp_path, taking)


def test_the_file_for_cloudwatch_is_json_and_names_families_that_exist():
    from ledgerops.metrics import NAMES

    found = json.loads(block("cloudwatch.md", "json"))["logs"]["metrics_collected"]["prometheus"]
    [declared] = found["emf_processor"]["metric_declaration"]

    for selector in declared["metric_selectors"]:
        assert [name for name in NAMES if re.search(selector, name)], selector
