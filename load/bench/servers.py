"""A real Prometheus and a real Alertmanager on loopback, with the generated configuration."""

import json
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ledgerops.mixin.alertmanager import alertmanager
from ledgerops.mixin.prometheus import prometheus_file
from ledgerops.mixin.rule_files import rule_files
from ledgerops.mixin.site import Site
from ledgerops.mixin.yaml_text import document
from ledgerops.servers.process import Process, answers, free_port

START_SECONDS = 120.0
ASK_SECONDS = 300.0  # for one answer: a Prometheus with many drivers is busy


class Prometheus:
    """The server with the rules of a site, asked over its API. `targets` are groups of what it scrapes, by the name of
    their file. Raises UserError when it does not start."""

    def __init__(
        self, program: str, folder: Path, site: Site, targets: Mapping[str, Sequence[Mapping[str, Any]]], *flags: str
    ) -> None:
        for name in ("rules", "targets"):
            (folder / name).mkdir(parents=True)
        for name, text in rule_files(site).items():
            (folder / "rules" / name).write_text(text)
        for name, groups in targets.items():
            (folder / "targets" / f"{name}.json").write_text(json.dumps(groups))
        (folder / "prometheus.yml").write_text(prometheus_file(site))
        address = f"127.0.0.1:{free_port()}"
        self.site, self.url = site, f"http://{address}"
        command = [program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
        command += [f"--web.listen-address={address}", *flags]
        self.process = Process("Prometheus", command, folder / "log")
        self.process.wait_until(lambda: answers(f"{self.url}/-/ready"), START_SECONDS)

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=ASK_SECONDS) as answer:
            return json.load(answer)["data"]

    def ask(self, expression: str, at: float | None = None) -> Any:
        """The series that an expression gives now, or gave `at` that epoch second."""
        return self.get("query", query=expression, **({} if at is None else {"time": f"{at:.3f}"}))["result"]

    def close(self) -> None:
        """Ends the server."""
        self.process.stop()


class Alertmanager:
    """The server with the generated configuration; what it tells goes to the URL `webhook`.

    `waits` (group_wait, group_interval) replace those of the configuration, and `routes` come before its own. Raises
    UserError when it does not start.
    """

    def __init__(
        self,
        program: str,
        folder: Path,
        webhook: str,
        site: Site,
        waits: Mapping[str, str],
        routes: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        config = alertmanager(site)
        config["route"] |= waits
        config["route"]["routes"] = [*({"receiver": "notify", **each} for each in routes), *config["route"]["routes"]]
        config["receivers"][0]["webhook_configs"][0]["url"] = webhook
        folder.mkdir(exist_ok=True)
        (folder / "alertmanager.yml").write_text(document(config))
        self.address = f"127.0.0.1:{free_port()}"
        command = [program, f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'data'}"]
        command += [f"--web.listen-address={self.address}", "--cluster.listen-address="]
        command += ["--web.external-url=http://alertmanager:9093"]
        self.process = Process("Alertmanager", command, folder / "log")
        self.process.wait_until(lambda: answers(f"http://{self.address}/-/ready"), START_SECONDS)

    def close(self) -> None:
        """Ends the server."""
        self.process.stop()
