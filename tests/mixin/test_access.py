"""Prometheus' and Alertmanager's files have the TLS and the credentials that are configured."""

import subprocess

import pytest
import yaml

from ledgerops.agent.exporter import Exporter
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.worker import Worker
from ledgerops.config import Config
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.errors import UserError
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.mixin.alertmanager import alertmanager_file
from ledgerops.mixin.kubernetes import kubernetes_files
from ledgerops.mixin.prometheus import prometheus_file
from ledgerops.mixin.site import Site, read_site
from ledgerops.runtime.registry import QueryRegistry
from tests.certificates import authority, certificate_of
from tests.monitoring import Prometheus
from tests.programs import needed, until

ACCESS = ("scheme", "tls_config", "authorization", "basic_auth", "tlsConfig", "basicAuth")


@pytest.fixture
def site(tmp_path):
    """The site of a TOML file."""

    def read(text):
        (tmp_path / "ledgerops.toml").write_text(text)
        return read_site(tmp_path / "ledgerops.toml")

    return read


def jobs(site):
    return {job["job_name"]: job for job in yaml.safe_load(prometheus_file(site))["scrape_configs"]}


def endpoint(site):
    return yaml.safe_load(kubernetes_files(site)["podmonitor.yaml"])["spec"]["podMetricsEndpoints"][0]


def test_plain_http_without_credentials_needs_nothing():
    assert not {*jobs(Site())["ledgerops"], *endpoint(Site())} & {*ACCESS}


def test_the_exporters_settings_in_the_same_file_are_followed(site):
    followed = site('tls_certificate = "c.pem"\ntls_key = "k.pem"\nbearer_token_file = "/etc/token"\n')

    job = jobs(followed)["ledgerops"]
    assert (job["scheme"], job["authorization"]) == ("https", {"credentials_file": "/etc/token"})
    assert endpoint(followed)["authorization"] == {"credentials": {"name": "ledgerops-scrape", "key": "token"}}
    assert "authorization" not in jobs(followed)["ledgerops-load"]


def test_the_paths_on_the_machine_of_prometheus_may_be_others(site):
    followed = site(
        'basic_auth_user = "me"\nbasic_auth_password_file = "here"\ntls_certificate = "c"\n'
        '[render]\nscrape_password_file = "there"\nscrape_ca_file = "ca.pem"\nscrape_server_name = "driver"\n'
    )

    job = jobs(followed)["ledgerops"]
    assert job["basic_auth"] == {"username": "me", "password_file": "there"}
    assert job["tls_config"] == {"ca_file": "ca.pem", "server_name": "driver"}
    assert endpoint(followed)["tlsConfig"] == {
        "ca": {"secret": {"name": "ledgerops-scrape", "key": "ca.crt"}},
        "serverName": "driver",
    }
    assert endpoint(followed)["basicAuth"]["password"] == {"name": "ledgerops-scrape", "key": "password"}


def test_client_certificates_that_drivers_ask_for_must_be_named(site):
    with pytest.raises(UserError, match=r"set render\.scrape_certificate and render\.scrape_key for Prometheus"):
        site('tls_certificate = "c"\ntls_client_ca = "ca"\n')


def test_alertmanager_and_prometheus_give_notify_its_token(site, tmp_path):
    (tmp_path / "token").write_text("t")
    followed = site(f'[render]\nnotify_url = "https://n:9465/alerts"\nnotify_token_file = "{tmp_path / "token"}"\n')
    (tmp_path / "alertmanager.yml").write_text(alertmanager_file(followed))
    done = subprocess.run(
        [needed("amtool"), "check-config", str(tmp_path / "alertmanager.yml")], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr
    [webhook] = yaml.safe_load(alertmanager_file(followed))["receivers"][0]["webhook_configs"]
    access = {"authorization": {"credentials_file": str(tmp_path / "token")}}
    assert (webhook["url"], webhook["http_config"]) == ("https://n:9465/alerts", access)
    assert jobs(followed)["ledgerops-notify"].items() >= {"scheme": "https", **access}.items()


def test_a_real_prometheus_scrapes_a_driver_that_wants_a_client_certificate_and_a_token(site, tmp_path):
    ca = authority(tmp_path)
    server, client = certificate_of(ca, "server"), certificate_of(ca, "client")
    (tmp_path / "token").write_text("s3cret")
    config = Config(
        port=0, tls_certificate=server.certificate, tls_key=server.key, tls_client_ca=ca.certificate,
        bearer_token_file=str(tmp_path / "token"),
    )  # fmt: skip
    stats = SelfStats()
    exporter = Exporter(config, Worker(EventQueue(stats), QueryRegistry(Diagnoser), stats), stats)
    exporter.start()
    followed = site(
        f'tls_certificate = "{config.tls_certificate}"\ntls_client_ca = "{ca.certificate}"\n'
        f'bearer_token_file = "{config.bearer_token_file}"\n[render]\nscrape_ca_file = "{ca.certificate}"\n'
        f'scrape_certificate = "{client.certificate}"\nscrape_key = "{client.key}"\nscrape_seconds = 1\n'
    )
    prometheus = Prometheus(tmp_path, [f"127.0.0.1:{exporter.port}"], followed)
    try:
        until(lambda: prometheus.ask("ledgerops_build_info"), 60, "a scrape")
    finally:
        prometheus.close()
        exporter.close()
