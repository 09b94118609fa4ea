"""alerts/prometheus.yml: what Prometheus scrapes and evaluates. Its targets are files, so that it fits every place."""

from ledgerops.mixin.access import notify_scrape_config, scrape_config
from ledgerops.mixin.site import Site, duration
from ledgerops.mixin.yaml_text import document


def prometheus_file(site: Site) -> str:
    """The text of the configuration. Files in `targets` beside it name the hosts: ledgerops.json, load.json,
    notify.json, alertmanager.json."""
    config = {
        "global": {
            "scrape_interval": duration(site.scrape_seconds),
            "scrape_timeout": duration(min(site.scrape_seconds, 10.0)),
            "evaluation_interval": duration(site.evaluation_seconds),
        },
        "rule_files": ["rules/*.yaml"],
        "alerting": {"alertmanagers": [{"file_sd_configs": [{"files": ["targets/alertmanager.json"]}]}]},
        "scrape_configs": [
            {
                "job_name": site.job,
                **scrape_config(site),
                "file_sd_configs": [{"files": ["targets/ledgerops.json"], "refresh_interval": "10s"}],
                # beyond it the whole scrape fails: the exporter's own budget (series_per_query) is to cut first
                "sample_limit": 50_000,
                "label_limit": 20,
                "label_value_length_limit": 500,
            },
            {
                # a generator comes and goes: as a target of the job above it would page when its plan ends
                "job_name": f"{site.job}-load",
                "file_sd_configs": [{"files": ["targets/load.json"], "refresh_interval": "10s"}],
            },
            {
                "job_name": site.notify_job,
                **notify_scrape_config(site),
                "file_sd_configs": [{"files": ["targets/notify.json"], "refresh_interval": "10s"}],
            },
        ],
    }
    return document(config)
