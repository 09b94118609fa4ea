"""The TLS and credentials with which Prometheus scrapes drivers, and Alertmanager posts to notify.

In Prometheus' own files secrets are paths on its machine; for the operator they are keys of one Secret.
"""

from typing import Any

from ledgerops.mixin.site import Site


def scrape_config(site: Site) -> dict[str, Any]:
    """What a job of prometheus.yml needs besides its targets; empty for plain HTTP without credentials."""
    tls = {
        "ca_file": site.scrape_ca_file,
        "cert_file": site.scrape_certificate,
        "key_file": site.scrape_key,
        "server_name": site.scrape_server_name,
    }
    return _without_empty(
        {
            "scheme": "https" if site.scrape_tls else "",
            "tls_config": _without_empty(tls) if site.scrape_tls else {},
            "authorization": {"credentials_file": site.scrape_token_file} if site.scrape_token_file else {},
            "basic_auth": {"username": site.scrape_user, "password_file": site.scrape_password_file}
            if site.scrape_user and not site.scrape_token_file
            else {},
        }
    )


def monitor_config(site: Site) -> dict[str, Any]:
    """The same for an endpoint of a PodMonitor, with the Secret's keys ca.crt, tls.crt, tls.key, token, user and
    password."""

    def key(name: str) -> dict[str, str]:
        return {"name": site.scrape_secret, "key": name}

    tls = {
        "ca": {"secret": key("ca.crt")} if site.scrape_ca_file else {},
        "cert": {"secret": key("tls.crt")} if site.scrape_certificate else {},
        "keySecret": key("tls.key") if site.scrape_key else {},
        "serverName": site.scrape_server_name,
    }
    return _without_empty(
        {
            "scheme": "https" if site.scrape_tls else "",
            "tlsConfig": _without_empty(tls) if site.scrape_tls else {},
            "authorization": {"credentials": key("token")} if site.scrape_token_file else {},
            "basicAuth": {"username": key("user"), "password": key("password")}
            if site.scrape_user and not site.scrape_token_file
            else {},
        }
    )


def notify_scrape_config(site: Site) -> dict[str, Any]:
    """What the job that scrapes notify needs: the token is the one that Alertmanager sends."""
    scheme = {"scheme": "https"} if site.notify_url.startswith("https:") else {}
    return {**scheme, **notify_config(site)}


def notify_config(site: Site) -> dict[str, Any]:
    """The http_config of Alertmanager's webhook; empty without a token and a private authority."""
    return _without_empty(
        {
            "authorization": {"credentials_file": site.notify_token_file} if site.notify_token_file else {},
            "tls_config": {"ca_file": site.notify_ca_file} if site.notify_ca_file else {},
        }
    )


def _without_empty(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value}
