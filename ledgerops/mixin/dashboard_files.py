"""dashboards: Grafana's JSON of every page, and the provisioning that loads them."""

from collections.abc import Mapping

from ledgerops.mixin.dashboards.build import page_json
from ledgerops.mixin.dashboards.pages import PAGES
from ledgerops.mixin.site import Site, duration
from ledgerops.mixin.yaml_text import HEAD

# tells Grafana to load the dashboards from files, unchangeable in its pages
PROVIDER = f"""{HEAD}apiVersion: 1
providers:
  - name: ledgerops
    type: file
    folder: ledgerops
    disableDeletion: true
    allowUiUpdates: false
    updateIntervalSeconds: 30
    options:
      path: /var/lib/grafana/dashboards
"""


def dashboard_files(site: Site) -> Mapping[str, str]:
    """`<uid>.json` -> text."""
    return {f"{page.uid}.json": page_json(page, site) for page in PAGES}


def datasource_file(site: Site) -> str:
    """Grafana's data sources: Prometheus, and Alertmanager beside it. The interval must be that of the scrapes."""
    return f"""{HEAD}apiVersion: 1
datasources:
  - name: Prometheus
    uid: prometheus
    type: prometheus
    access: proxy
    url: http://prometheus:9090
    isDefault: true
    editable: false
    jsonData:
      httpMethod: POST
      timeInterval: {duration(site.scrape_seconds)}
      prometheusType: Prometheus
      manageAlerts: true
  - name: Alertmanager
    uid: alertmanager
    type: alertmanager
    access: proxy
    url: http://alertmanager:9093
    editable: false
    jsonData:
      implementation: prometheus
"""
