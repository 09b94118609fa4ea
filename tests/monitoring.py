"""Prometheus and Alertmanager as real servers with the generated configuration, for tests."""

import json
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from ledgerops.mixin.alertmanager import alertmanager_file
from ledgerops.mixin.prometheus import prometheus_file
from ledgerops.mixin.rule_files import rule_files
from ledgerops.mixin.site import Site
from ledgerops.servers.process import Process, answers, free_port
from tests.programs import needed


class Prometheus:
    """The server, asked over its API; it scrapes these addresses."""

    def __init__(
        self, folder: Path, exporters: Sequence[str], site: Site, alertmanager: str | None = None, flag: str = ""
    ) -> None:
        for name in ("rules", "targets"):
            (folder / name).mkdir(parents=True)
        for name, text in rule_files(site).items():
            (folder / "rules" / name).write_text(text)
        (folder / "prometheus.yml").write_text(prometheus_file(site))
        for name, addresses in (("ledgerops", exporters), ("alertmanager", [alertmanager] if alertmanager else [])):
            (folder / "targets" / f"{name}.json").write_text(json.dumps([{"targets": [*addresses]}]))
        self.url = f"http://127.0.0.1:{free_port()}"
        command = [
            needed("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
            *([f"--{flag}"] if flag else []),
        ]
        self._process = Process("Prometheus", command, folder / "log")
        self._process.wait_until(lambda: answers(f"{self.url}/-/ready"), 60)

    def get(self, path: str, **parameters: str):
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]

    def ask(self, expression: str):
        return self.get("query", query=expression)["result"]

    def firing(self) -> set[str]:
        return {each["metric"]["alertname"] for each in self.ask('ALERTS{alertstate="firing"}')}

    def close(self) -> None:
        self._process.stop()


QUICK = {"group_wait": "1s", "group_interval": "2s"}


class Alertmanager:
    """The server; what it tells goes to `webhook`. `waits` replace those of the configuration."""

    def __init__(self, folder: Path, webhook: str, site: Site, waits: Mapping[str, str] = QUICK) -> None:
        config = yaml.safe_load(alertmanager_file(site))
        config["route"] |= waits
        config["receivers"][0]["webhook_configs"][0]["url"] = webhook
        folder.mkdir(exist_ok=True)
        (folder / "alertmanager.yml").write_text(yaml.safe_dump(config))
        self.address = f"127.0.0.1:{free_port()}"
        command = [
            needed("prometheus-alertmanager"),
            f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
            "--cluster.listen-address=",
            "--web.external-url=http://alertmanager:9093",
        ]
        self._process = Process("Alertmanager", command, folder / "log")
        self._process.wait_until(lambda: answers(f"http://{self.address}/-/ready"), 60)

    def close(self) -> None:
        self._process.stop()
