"""Objects for a cluster: the same rules and dashboards, in the forms that the Prometheus operator and Grafana take."""

import json
import re
from functools import cache

import pytest
import yaml

from ledgerops.cli import main
from ledgerops.errors import UserError
from ledgerops.mixin import kubernetes
from ledgerops.mixin.alerts import ALERTS
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.rule_files import rule_files
from ledgerops.mixin.site import Site
from tests.paths import ROOT
from tests.tables import cases

kubernetes_files = cache(kubernetes.kubernetes_files)  # a site's files are made once for all tests
DEFAULTS = Site()
PROTECTED = Site(scrape_token_file="/t", kubernetes_driver_hosts="10.*")
NAMESPACED = Site(kubernetes_namespaces="spark, jobs", kubernetes_labels="release=monitoring,team=data")


def objects(site=DEFAULTS, file=None, kind=None):
    """Those of a site, of a file alone or of a kind alone."""
    texts = kubernetes_files(site).values() if file is None else [kubernetes_files(site)[file]]
    return [each for text in texts for each in yaml.safe_load_all(text) if kind in (None, each["kind"])]


@pytest.mark.parametrize(
    "site", [Site(), NAMESPACED, PROTECTED], ids=["defaults", "several namespaces", "drivers with a token"]
)
def test_every_object_of_kubernetes_itself_fits_its_published_schema(site):
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    kinds = set()
    for each in objects(site):
        if "." not in each["apiVersion"] or each["apiVersion"].endswith("k8s.io/v1"):
            kubernetes_validate.validate(each, "1.34", strict=True)
            kinds.add(each["kind"])

    assert {"ConfigMap", "Deployment", "NetworkPolicy", "Service"} <= kinds


def test_a_field_that_kubernetes_does_not_know_fails_the_schema():
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    [deployment] = objects(kind="Deployment")
    deployment["spec"]["replica"] = 1

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, "1.34", strict=True)


@pytest.fixture
def application():
    """The SparkApplication of the guide."""
    blocks = re.findall(r"```yaml\n(.+?)```", (ROOT / "docs/guides/kubernetes.md").read_text("utf-8"), re.DOTALL)
    [found] = [each for block in blocks for each in yaml.safe_load_all(block) if each["kind"] == "SparkApplication"]
    return found


def as_the_operator_reads(application):
    """What is left of the object in the operator's published model; raises for what it asks for and for other types."""
    models = pytest.importorskip("kubeflow_spark_api.models")
    return models.SparkV1beta2SparkApplication.from_dict(application).to_dict()


def test_the_application_of_the_guide_fits_the_model_that_the_spark_operator_publishes(application):
    assert application["apiVersion"] == "sparkoperator.k8s.io/v1beta2"
    assert as_the_operator_reads(application) == application


def test_a_field_that_the_spark_operator_does_not_know_is_not_read(application):
    application["spec"]["driver"]["label"] = application["spec"]["driver"].pop("labels")

    assert as_the_operator_reads(application) != application


@pytest.mark.parametrize("field", ["executor", "driver"])
def test_a_field_that_the_spark_operator_asks_for_cannot_be_left_out(application, field):
    del application["spec"][field]

    with pytest.raises(ValueError, match=field):
        as_the_operator_reads(application)


@pytest.mark.parametrize(
    ("site", "where"), [(DEFAULTS, None), (NAMESPACED, {"matchNames": ["spark", "jobs"]})], ids=["here", "elsewhere"]
)
def test_drivers_are_found_by_their_labels_and_scraped_as_the_job_that_rules_select(site, where):
    [spec] = [each["spec"] for each in objects(site, "podmonitor.yaml")]
    [endpoint] = spec["podMetricsEndpoints"]

    assert spec.get("namespaceSelector") == where
    assert spec["selector"]["matchLabels"] == {"ledgerops": "true", "spark-role": "driver"}
    assert "app" not in spec["podTargetLabels"] and endpoint["honorLabels"] is True
    assert [each["replacement"] for each in endpoint["relabelings"]] == ["$1:9464", "ledgerops"]


def test_every_object_of_the_operator_has_the_labels_that_its_selectors_ask_for():
    for each in objects(NAMESPACED):
        if each["apiVersion"].startswith("monitoring.coreos.com"):
            assert {"release": "monitoring", "team": "data"}.items() <= each["metadata"]["labels"].items()


def test_executors_reach_their_driver_on_every_port_and_prometheus_on_that_of_the_exporter():
    [policy] = [each["spec"] for each in objects(file="networkpolicy.yaml")]

    assert policy["podSelector"] == {"matchLabels": {"ledgerops": "true"}}
    scrape, executors = policy["ingress"]
    assert scrape["ports"] == [{"protocol": "TCP", "port": 9464}]
    assert executors == {"from": [{"podSelector": {}}]}


@cases(
    "site, options",
    ("a token", Site(scrape_token_file="/t", kubernetes_driver_hosts="10.*, *.spark.svc"),
     ["--exporter-token-file", "/drivers/token", "--token-host", "10.*", "--token-host", "*.spark.svc"]),
    ("a password and TLS",
     Site(scrape_user="me", scrape_password_file="/p", scrape_tls=True, kubernetes_driver_hosts="10.*"),
     ["--exporter-scheme", "https", "--exporter-user", "me", "--exporter-password-file", "/drivers/password",
      "--token-host", "10.*"]),
    ("TLS with a client certificate", Site(scrape_tls=True, scrape_certificate="/c", scrape_key="/k"),
     ["--exporter-scheme", "https", "--client-certificate", "/drivers/tls.crt", "--client-key", "/drivers/tls.key"]),
    ("no address that may have it", Site(scrape_token_file="/t"), []),
    ("no credentials", Site(kubernetes_driver_hosts="10.*"), []),
    ("TLS of a public authority", Site(scrape_tls=True), ["--exporter-scheme", "https"]),
)  # fmt: skip
def test_notify_asks_drivers_with_their_credentials_where_it_is_said_which_hosts_may_have_them(site, options):
    [pod] = [each["spec"]["template"]["spec"] for each in objects(site, kind="Deployment")]
    [container] = pod["containers"]

    assert container["args"][container["args"].index("--prometheus") + 2 :] == options
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    secrets = {each["name"]: each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
    asks = any(each.startswith("/drivers/") for each in options)
    assert ("drivers" in mounted, "drivers" in secrets) == (asks, asks)
    if asks:
        assert (mounted["drivers"], secrets["drivers"]) == ("/drivers", "ledgerops-scrape")


def test_notify_trusts_the_private_authority_of_drivers():
    site = Site(scrape_tls=True, scrape_ca_file="/ca")
    [pod] = [each["spec"]["template"]["spec"] for each in objects(site, kind="Deployment")]
    [container] = pod["containers"]
    assert container["env"] == [{"name": "SSL_CERT_FILE", "value": "/drivers/ca.crt"}]
    assert {"name": "drivers", "mountPath": "/drivers", "readOnly": True} in container["volumeMounts"]


def test_the_pod_of_notify_is_let_in_where_pod_security_is_restricted():
    [pod] = [each["spec"]["template"]["spec"] for each in objects(kind="Deployment")]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {
        "type": "RuntimeDefault"
    }


def test_the_rules_are_those_of_the_files():
    [rule] = objects(kind="PrometheusRule")
    files = [group for text in rule_files(Site()).values() for group in yaml.safe_load(text)["groups"]]

    assert rule["spec"]["groups"] == files
    assert {each["alert"] for group in files for each in group["rules"] if "alert" in each} == {a.name for a in ALERTS}


@pytest.mark.parametrize("site", [Site(), NAMESPACED], ids=["defaults", "several namespaces"])
def test_notify_is_scraped_with_its_token_as_the_job_that_its_alerts_select(site):
    deployment, service, policy, monitor = objects(site, "notify.yaml")
    [endpoint] = monitor["spec"]["endpoints"]
    pod = deployment["spec"]["template"]["spec"]
    [secret] = [each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each]

    assert monitor["kind"] == "ServiceMonitor"
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": site.notify_job}]
    assert endpoint["authorization"] == {"credentials": {"name": secret, "key": "token"}}
    assert "/secrets/token" in pod["containers"][0]["args"], "the token that is asked for is the one that is sent"
    assert policy["spec"]["podSelector"]["matchLabels"] == service["spec"]["selector"]
    [rules] = objects(site, "prometheusrule.yaml")
    asked = [rule["expr"] for group in rules["spec"]["groups"] for rule in group["rules"]]
    assert sum(f'job="{site.notify_job}"' in each for each in asked) >= 4


def test_alertmanager_sends_to_the_service_of_notify():
    _, service, *_ = objects(file="notify.yaml")
    [port] = service["spec"]["ports"]

    assert Site().notify_url == f"http://{service['metadata']['name']}:{port['port']}/alerts"
    assert Site().notify_url in (ROOT / "docs/guides/kubernetes.md").read_text("utf-8")


def test_what_finds_drivers_does_not_find_notify():
    [drivers] = objects(file="podmonitor.yaml")
    deployment, *_ = objects(file="notify.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]

    assert not drivers["spec"]["selector"]["matchLabels"].items() & labels.items()


def test_every_dashboard_is_a_config_map_that_fits_and_is_found():
    boards = objects(kind="ConfigMap")

    assert {json.loads(text)["uid"] for board in boards for text in board["data"].values()} == {p.uid for p in PAGES}
    for board in boards:
        assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", board["metadata"]["name"])
        assert sum(map(len, board["data"].values())) < 1024 * 1024


def test_the_command_writes_them_into_a_folder(tmp_path, capsys):
    assert main(["render", "--format", "kubernetes", "--out", str(tmp_path / "k8s")]) == 0

    assert sorted(file.name for file in (tmp_path / "k8s").iterdir()) == sorted(kubernetes_files(Site()))


def test_what_is_no_longer_made_is_named_and_all_files_stay(tmp_path, capsys, monkeypatch):
    argv = ["render", "--format", "kubernetes", "--out", str(tmp_path)]
    (tmp_path / "settings.toml").write_text('[render]\nkubernetes_workers = "a=b"\n')
    monkeypatch.setenv("LEDGEROPS_CONFIG", str(tmp_path / "settings.toml"))
    assert main(argv) == 0
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\xff\xfe")
    monkeypatch.delenv("LEDGEROPS_CONFIG")
    capsys.readouterr()

    assert main(argv) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "not removed (your copies, or no longer made, and still loaded): scaledobject.yaml\n"
    assert (tmp_path / "logo.png").exists() and (tmp_path / "scaledobject.yaml").exists()


def test_a_checkout_is_no_place_for_them(capsys):
    assert main(["render", "--format", "kubernetes"]) == 2
    assert capsys.readouterr().err == (
        "ledgerops: --format kubernetes needs --out FOLDER: these files do not belong in a checkout\n"
    )


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("kubernetes_labels", "release", "kubernetes_labels is name=value,name=value, not 'release'"),
        ("kubernetes_labels", "a=b\n    evil: true", "kubernetes_labels is name=value,name=value, not 'a=b"),
        ("kubernetes_labels", "release = a", "kubernetes_labels is name=value,name=value, not 'release = a'"),
        ("kubernetes_workers", "payments=Spark_Worker", "kubernetes_workers is application=Deployment,..., not"),
        ("kubernetes_workers", "payments = spark-worker", "kubernetes_workers is application=Deployment,..., not"),
        ("kubernetes_workers_max", 0.5, "kubernetes_workers_max must be at least 1"),
        ("kubernetes_labels", "a={{ x }}", "kubernetes_labels is name=value,name=value, not 'a={{ x }}'"),
        ("kubernetes_labels", "a=" + "b" * 64, "kubernetes_labels is name=value,name=value, not 'a=bbb"),
        ("kubernetes_monitoring", "mon: {evil: true}", "not a name that Kubernetes takes: 'mon: {evil: true}'"),
        ("kubernetes_monitoring", "", "not a name that Kubernetes takes: ''"),
        ("kubernetes_namespaces", "spark,Jobs", "not a name that Kubernetes takes: 'Jobs'"),
        ("scrape_secret", "a\nb", "not a name that Kubernetes takes: 'a"),
        ("kubernetes_driver_hosts", "$(id)", "kubernetes_driver_hosts are patterns of hosts, not '$(id)'"),
    ],
)
def test_a_name_that_no_cluster_takes_is_refused(setting, value, message):
    with pytest.raises(UserError, match=f"^render: {re.escape(message)}"):
        Site(**{setting: value})


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("kubernetes_labels", "app.kubernetes.io/part-of=ledger, team=data_1, empty="),
        ("kubernetes_namespaces", "spark, jobs-2"),
        ("kubernetes_driver_hosts", "10.*, *.spark.svc, [fd00::1]"),
    ],
)
def test_a_name_that_a_cluster_takes_is_not(setting, value):
    assert Site(**{setting: value})
