"""The same rules and dashboards for a cluster with the Prometheus operator: objects to `kubectl apply`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerops.mixin.access import monitor_config
from ledgerops.mixin.dashboards.build import page_json
from ledgerops.mixin.dashboards.model import Page
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.rule_files import FILES, groups
from ledgerops.mixin.site import Site, duration
from ledgerops.mixin.yaml_text import document

PART = {"app.kubernetes.io/part-of": "ledgerops"}
PORT = 9464


def kubernetes_files(site: Site) -> Mapping[str, str]:
    """File name -> text: a PrometheusRule, a Service and a ServiceMonitor for drivers, a ConfigMap a dashboard."""
    made = {
        "prometheusrule.yaml": document(_rule(site)),
        "servicemonitor.yaml": document(_service(), _monitor(site)),
    }
    made |= {f"dashboard-{page.uid.removeprefix('ledgerops-')}.yaml": document(_board(page, site)) for page in PAGES}
    return made


def _rule(site: Site) -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "ledgerops", "labels": PART},
        "spec": {"groups": [group for name in FILES for group in groups(name, site)]},
    }


def _service() -> dict[str, Any]:
    """Headless: each driver is scraped by itself. Drivers bear the label ledgerops: "true" and listen on 0.0.0.0."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "ledgerops-drivers", "labels": PART},
        "spec": {
            "clusterIP": "None",
            "selector": {"ledgerops": "true"},
            "ports": [{"name": "ledgerops", "port": PORT, "targetPort": PORT}],
        },
    }


def _monitor(site: Site) -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": "ledgerops", "labels": PART},
        "spec": {
            "selector": {"matchLabels": PART},
            "sampleLimit": 50_000,
            "endpoints": [
                {
                    "port": "ledgerops",
                    **monitor_config(site),
                    "interval": duration(site.scrape_seconds),
                    "scrapeTimeout": duration(min(site.scrape_seconds, 10.0)),
                    # rules and dashboards select by it
                    "relabelings": [{"targetLabel": "job", "replacement": site.job}],
                }
            ],
        },
    }


def _board(page: Page, site: Site) -> dict[str, Any]:
    """For Grafana's sidecar, which loads what bears the label grafana_dashboard."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": page.uid, "labels": {**PART, "grafana_dashboard": "1"}},
        "data": {f"{page.uid}.json": page_json(page, site)},
    }
