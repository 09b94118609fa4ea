"""The same rules and dashboards for a cluster with the Prometheus operator: objects to `kubectl apply`."""

from collections.abc import Mapping
from typing import Any

from ledgerops.mixin.access import monitor_config
from ledgerops.mixin.dashboards.build import page_json
from ledgerops.mixin.dashboards.model import Page
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.keda import scaled_objects
from ledgerops.mixin.rule_files import FILES, groups
from ledgerops.mixin.site import Site, duration
from ledgerops.mixin.yaml_text import document

PART = {"app.kubernetes.io/part-of": "ledgerops"}
DRIVER = {"ledgerops": "true"}  # label of the pods of drivers, which listen on 0.0.0.0
PORT, NOTIFY_PORT = 9464, 9465
OPERATOR = "monitoring.coreos.com/v1"


def kubernetes_files(site: Site) -> Mapping[str, str]:
    """File name -> text: rules, what finds drivers, who may reach them, notify, and a ConfigMap a dashboard."""
    made = {
        "prometheusrule.yaml": [_rule(site)],
        "podmonitor.yaml": [_pod_monitor(site)],
        "networkpolicy.yaml": [_driver_policy(site)],
        "notify.yaml": [
            _notify(site),
            _notify_service(site),
            _policy("ledgerops-notify", NOTIFY, NOTIFY_PORT, site),
            _notify_monitor(site),
        ],
    }
    if site.kubernetes_workers:
        made["scaledobject.yaml"] = scaled_objects(site)
    made |= {f"dashboard-{page.uid.removeprefix('ledgerops-')}.yaml": [_board(page, site)] for page in PAGES}
    return {name: document(*objects) for name, objects in made.items()}


def _metadata(name: str, site: Site, **labels: str) -> dict[str, Any]:
    asked = dict(each.strip().split("=", 1) for each in site.kubernetes_labels.split(",") if each)
    return {"name": name, "labels": {**asked, **PART, **labels}}


def _object(api: str, kind: str, name: str, site: Site, spec: dict[str, Any], **labels: str) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": _metadata(name, site, **labels), "spec": spec}


def _rule(site: Site) -> dict[str, Any]:
    spec = {"groups": [group for name in FILES for group in groups(name, site)]}
    return _object(OPERATOR, "PrometheusRule", "ledgerops", site, spec)


def _endpoint(site: Site, port: str, job: str, *relabelings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "port": port,
        "interval": duration(site.scrape_seconds),
        "scrapeTimeout": duration(min(site.scrape_seconds, 10.0)),
        # rules and dashboards select by it
        "relabelings": [*relabelings, {"targetLabel": "job", "replacement": job}],
    }


def _pod_monitor(site: Site) -> dict[str, Any]:
    """Finds drivers in the namespaces that are given, else in its own. Spark declares the port of its UI in the
    driver's pod, and ours is at the same address."""
    address = {"sourceLabels": ["__meta_kubernetes_pod_ip"], "targetLabel": "__address__", "replacement": f"$1:{PORT}"}
    endpoint = {
        **_endpoint(site, "spark-ui", site.job, address),
        **monitor_config(site),
        "honorLabels": True,  # the label app is the driver's own, whatever label app its pod has
    }
    named = [each.strip() for each in site.kubernetes_namespaces.split(",") if each]
    spec = {
        **({"namespaceSelector": {"matchNames": named}} if named else {}),
        "selector": {"matchLabels": {**DRIVER, "spark-role": "driver"}},
        "podTargetLabels": ["spark-app-name", "spark-app-selector"],
        "sampleLimit": 50_000,
        "podMetricsEndpoints": [endpoint],
    }
    return _object(OPERATOR, "PodMonitor", "ledgerops", site, spec)


def _policy(name: str, pods: Mapping[str, str], port: int, site: Site) -> dict[str, Any]:
    """Lets the namespace of Prometheus and Alertmanager, and the own one, reach one port of pods."""
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": site.kubernetes_monitoring}}}
    spec = {
        "podSelector": {"matchLabels": dict(pods)},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [monitoring, {"podSelector": {}}], "ports": [{"protocol": "TCP", "port": port}]}],
    }
    return _object("networking.k8s.io/v1", "NetworkPolicy", name, site, spec)


def _driver_policy(site: Site) -> dict[str, Any]:
    """Executors, in the same namespace, must reach their driver on any port."""
    policy = _policy("ledgerops-drivers", DRIVER, PORT, site)
    policy["spec"]["ingress"].append({"from": [{"podSelector": {}}]})
    return policy


NOTIFY = {"app.kubernetes.io/name": "ledgerops-notify"}
NOTIFY_SECRET = "ledgerops-notify"
DRIVERS_SECRETS = "/drivers"  # where notify finds the Secret with the drivers' credentials


def _notify(site: Site) -> dict[str, Any]:
    """The addresses of senders and the token are in the Secret NOTIFY_SECRET."""
    access = _access_to_drivers(site)
    trusts = site.scrape_tls and bool(site.scrape_ca_file)
    mounts = trusts or any(each.startswith(DRIVERS_SECRETS) for each in access)
    drivers = {"name": "drivers", "secret": {"secretName": site.scrape_secret}}
    trust = {"name": "SSL_CERT_FILE", "value": f"{DRIVERS_SECRETS}/ca.crt"}
    container = {
        "name": "notify",
        "image": "ledgerops:latest",
        "args": [
            "ledgerops", "notify", "--host", "0.0.0.0", "--port", str(NOTIFY_PORT), "--queue", "/data/queue.db",
            "--senders", "/secrets/senders", "--token-file", "/secrets/token",
            "--prometheus", f"http://prometheus-operated.{site.kubernetes_monitoring}:9090", *access,
        ],
        "ports": [{"name": "http", "containerPort": NOTIFY_PORT}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
        **({"env": [trust]} if trusts else {}),
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "secrets", "mountPath": "/secrets", "readOnly": True}, {"name": "data", "mountPath": "/data"},
            *([{"name": "drivers", "mountPath": DRIVERS_SECRETS, "readOnly": True}] if mounts else []),
        ],
    }  # fmt: skip
    pod = {
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "secrets", "secret": {"secretName": NOTIFY_SECRET}},
            {"name": "data", "emptyDir": {}},
            *([drivers] if mounts else []),
        ],
    }  # fmt: skip
    spec = {
        "replicas": 1,  # the queue is a file
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": NOTIFY},
        "template": {"metadata": {"labels": {**PART, **NOTIFY}}, "spec": pod},
    }
    return _object("apps/v1", "Deployment", "ledgerops-notify", site, spec, **NOTIFY)


def _access_to_drivers(site: Site) -> list[str]:
    """The options with which notify asks drivers that have TLS, or want a token or a password: that only where hosts
    may have it."""
    hosts = [each.strip() for each in site.kubernetes_driver_hosts.split(",") if each.strip()]
    found = ["--exporter-scheme", "https"] if site.scrape_tls else []
    if site.scrape_tls and site.scrape_certificate:
        found += ["--client-certificate", f"{DRIVERS_SECRETS}/tls.crt", "--client-key", f"{DRIVERS_SECRETS}/tls.key"]
    if site.scrape_token_file:
        secret = ["--exporter-token-file", f"{DRIVERS_SECRETS}/token"]
    elif site.scrape_user:
        secret = ["--exporter-user", site.scrape_user, "--exporter-password-file", f"{DRIVERS_SECRETS}/password"]
    else:
        return found
    return [*found, *secret, *(part for host in hosts for part in ("--token-host", host))] if hosts else found


def _notify_service(site: Site) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "notify", "labels": NOTIFY},
        "spec": {"selector": NOTIFY, "ports": [{"name": "http", "port": NOTIFY_PORT, "targetPort": "http"}]},
    }


def _notify_monitor(site: Site) -> dict[str, Any]:
    """For the alerts on notify itself."""
    token = {"credentials": {"name": NOTIFY_SECRET, "key": "token"}}
    endpoints = [{**_endpoint(site, "http", site.notify_job), "authorization": token}]
    spec = {"selector": {"matchLabels": NOTIFY}, "endpoints": endpoints}
    return _object(OPERATOR, "ServiceMonitor", "ledgerops-notify", site, spec)


def _board(page: Page, site: Site) -> dict[str, Any]:
    """For Grafana's sidecar, which loads what bears the label grafana_dashboard."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(page.uid, site, grafana_dashboard="1"),
        "data": {f"{page.uid}.json": page_json(page, site)},
    }
