"""Prometheus and Alertmanager as real servers with the generated configuration, for tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ledgerops.mixin.site import Site
from load.bench import servers
from tests.programs import needed


class Prometheus(servers.Prometheus):
    """Scrapes these addresses."""

    def __init__(
        self, folder: Path, exporters: Sequence[str], site: Site, alertmanager: str | None = None, flag: str = ""
    ) -> None:
        targets = {"ledgerops": [*exporters], "alertmanager": [alertmanager] if alertmanager else []}
        groups = {name: [{"targets": addresses}] for name, addresses in targets.items()}
        super().__init__(needed("prometheus"), folder, site, groups, *([f"--{flag}"] if flag else []))

    def firing(self) -> set[str]:
        return {each["metric"]["alertname"] for each in self.ask('ALERTS{alertstate="firing"}')}


QUICK = {"group_wait": "1s", "group_interval": "2s"}


class Alertmanager(servers.Alertmanager):
    def __init__(self, folder: Path, webhook: str, site: Site, waits: Mapping[str, str] = QUICK) -> None:
        super().__init__(needed("prometheus-alertmanager"), folder, webhook, site, waits)
