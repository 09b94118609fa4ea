"""Where generated alerts and dashboards are to work: selectors, objectives, windows, links, in one typed place."""

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ledgerops.config import FRESHNESS_OBJECTIVE_SECONDS, MAX_SECONDS, read_toml, setting, typed
from ledgerops.diagnosis.runbook import PAGES
from ledgerops.errors import UserError

EXPORTER_SETTINGS = {
    "bearer_token_file": "scrape_token_file",
    "basic_auth_user": "scrape_user",
    "basic_auth_password_file": "scrape_password_file",
}

# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and .../labels/
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
LABEL_NAME = r"[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?"
LABEL = re.compile(rf"(?:[a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?/)?{LABEL_NAME}=(?:{LABEL_NAME})?", re.ASCII)
HOSTS = re.compile(r"[\w.:*?\[\], -]*", re.ASCII)


def duration(seconds: float) -> str:
    """Seconds in Prometheus' notation, exactly: 90 -> "90s", 3600 -> "1h", 0.5 -> "500ms"."""
    millis = round(seconds * 1000)
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if millis and millis % size == 0:
            return f"{millis // size}{unit}"
    return f"{millis}ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Read from the table `render` of ledgerops.toml; each field has a default that fits docker-compose.yaml.

    Drivers are asked as the exporter's settings in the same file say, where the `scrape_*` do not say otherwise.
    """

    job: str = setting("ledgerops", "Name of the scrape job: every selector carries it.")
    scrape_seconds: float = setting(5.0, "Scrape interval, also of Grafana's data source.")
    evaluation_seconds: float = setting(15.0, "How often rules are evaluated.")
    time_scale: float = setting(
        1.0,
        "Multiplies every window and `for`: a drill or a demonstration has minutes, not days. What the diagnosis needs "
        "to name a query that hangs, or a broker that is away, is not scaled.",
    )
    freshness_seconds: float = setting(FRESHNESS_OBJECTIVE_SECONDS, "Results that are older are bad.")
    freshness_objective: float = setting(0.99, "Share of the time in which results are not bad.")
    period_days: float = setting(30.0, "Period of the objective.")
    retention_seconds: float = setting(3600.0, "Least time for which unread rows must still be kept.")
    runbooks: str = setting(PAGES, "Address of the pages of problems, for links.")
    grafana: str = setting("http://localhost:3000", "Address of Grafana, for links.")
    scrape_tls: bool = setting(
        False, "Whether Prometheus asks drivers by https; also where the exporter's settings in the same file say so."
    )
    scrape_ca_file: str = setting(
        "", "File of Prometheus with the authority that signed the drivers' certificates; without it a public one."
    )
    scrape_server_name: str = setting("", "Name in the certificates, where drivers are asked by their address.")
    scrape_token_file: str = setting("", "File of Prometheus with the drivers' bearer token.")
    scrape_user: str = setting("", "User name that the drivers ask for.")
    scrape_password_file: str = setting("", "File of Prometheus with its password.")
    scrape_certificate: str = setting("", "File of Prometheus, for drivers that ask for client certificates.")
    scrape_key: str = setting("", "File of Prometheus with the key of that certificate.")
    scrape_secret: str = setting("ledgerops-scrape", "Secret that has all this in a cluster.")
    kubernetes_labels: str = setting(
        "", "Labels of every object, name=value,name=value: what the operator's selectors ask for."
    )
    kubernetes_namespaces: str = setting(
        "", "Namespaces of the drivers, comma-separated; without them the PodMonitor's own."
    )
    kubernetes_monitoring: str = setting("monitoring", "Namespace of Prometheus, which NetworkPolicies let in.")
    kubernetes_workers: str = setting(
        "", "Spark workers that KEDA scales by the lag of their queries, application=Deployment,..."
    )
    kubernetes_workers_max: float = setting(
        8.0, "Most of these workers: no more than the source has partitions over the cores of a worker."
    )
    kubernetes_driver_hosts: str = setting(
        "", "Patterns of the drivers' hosts, comma-separated, to which notify sends credentials."
    )
    notify_url: str = setting("http://notify:9465/alerts", "Address of `ledgerops notify` for Alertmanager.")
    notify_token_file: str = setting("", "File of Alertmanager with the bearer token of notify.")
    notify_ca_file: str = setting("", "File of Alertmanager with the authority that signed notify's certificate.")

    def __post_init__(self) -> None:
        objective = self.freshness_objective
        if not objective < 1:
            raise UserError(f"render: freshness_objective is a share below 1, not {objective:g}")
        if 14.4 * self.budget >= 1:
            raise UserError(
                f"render: with freshness_objective {objective:g} the fast burn alert could never fire "
                "(14.4 x the error budget is above 1); choose 0.94 or more"
            )
        self._check_kubernetes()
        workers = [each.partition("=")[::2] for each in self.kubernetes_workers.split(",") if each]
        if any(not app.strip() or app != app.rstrip() or not NAME.fullmatch(workload) for app, workload in workers):
            raise UserError(
                f"render: kubernetes_workers is application=Deployment,..., not {self.kubernetes_workers!r:.60}"
            )
        if any(mark in self.job for mark in '"\\\n'):
            raise UserError(f"render: job must not contain quotes, backslashes or line breaks: {self.job!r:.60}")
        for name in (each.name for each in fields(self) if isinstance(each.default, float)):
            if not getattr(self, name) > 0:
                raise UserError(f"render: {name} must be above 0")
            if name == "kubernetes_workers_max" and getattr(self, name) < 1:
                raise UserError("render: kubernetes_workers_max must be at least 1")
            if getattr(self, name) > MAX_SECONDS:
                raise UserError(f"render: {name} must be at most {MAX_SECONDS:.0f}, not {getattr(self, name):g}")

    def _check_kubernetes(self) -> None:
        """Raises UserError for what no cluster takes."""
        hosts, labels = self.kubernetes_driver_hosts, self.kubernetes_labels
        if any(not LABEL.fullmatch(each.strip()) for each in labels.split(",") if each):
            raise UserError(f"render: kubernetes_labels is name=value,name=value, not {labels!r:.60}")
        namespaces = (
            [each.strip() for each in self.kubernetes_namespaces.split(",")] if self.kubernetes_namespaces else []
        )
        for name in (self.kubernetes_monitoring, self.scrape_secret, *namespaces):
            if not NAME.fullmatch(name):
                raise UserError(f"render: not a name that Kubernetes takes: {name!r:.60}; use a-z, 0-9 and -")
        if not HOSTS.fullmatch(hosts):
            raise UserError(f"render: kubernetes_driver_hosts are patterns of hosts, not {hosts!r:.60}")

    @property
    def budget(self) -> float:
        """The share of the time that the objective allows to be bad."""
        return 1 - self.freshness_objective

    def window(self, seconds: float) -> str:
        """A window or `for` of so many seconds, scaled; never below two scrapes."""
        return duration(max(seconds * self.time_scale, 2 * self.scrape_seconds))

    def matchers(self, *more: str) -> str:
        """`{job="...", ...}`."""
        return "{" + ", ".join((f'job="{self.job}"', *more)) + "}"

    def series(self, name: str, *more: str) -> str:
        """A selector of a metric at this site."""
        return f"{name}{self.matchers(*more)}"

    @property
    def notify_job(self) -> str:
        """The name of the job that scrapes notify."""
        return f"{self.job}-notify"

    def notify_series(self, name: str) -> str:
        """A selector of one of notify's own metrics."""
        return f'{name}{{job="{self.notify_job}"}}'


def read_site(file: Path | None) -> Site:
    """The table `render` of a TOML file; the defaults without one. Raises UserError for what it does not know."""
    if file is None:
        return Site()
    whole = read_toml(file)
    table = whole.get("render", {})
    if not isinstance(table, dict):
        raise UserError(f"{file}: render must be a table")
    values: dict[str, Any] = {"scrape_tls": bool(whole.get("tls_certificate"))}
    values |= {name: str(whole.get(of_exporter, "")) for of_exporter, name in EXPORTER_SETTINGS.items()}
    values |= {key: typed(Site, key, value, str(file), "render.") for key, value in table.items()}
    site = Site(**values)
    if whole.get("tls_client_ca") and not (site.scrape_certificate and site.scrape_key):
        raise UserError(
            f"{file}: the exporter asks for client certificates (tls_client_ca): set render.scrape_certificate and "
            "render.scrape_key for Prometheus"
        )
    return site
