"""Who may ask the exporter: the Host header on loopback, the credentials, and the certificates."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import ssl
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from ledgerops.common.credentials import authorizations
from ledgerops.config import Config
from ledgerops.errors import UserError

log = logging.getLogger("ledgerops")

OPEN_PATHS = ("/healthz",)  # asked by probes that have no credentials; it says nothing of the queries


class Access:
    """Lets requests in or refuses them. Raises UserError on unreadable secrets."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._files = [each for each in (config.basic_auth_password_file, config.bearer_token_file) if each]
        self._read_at = self._versions()
        self._credentials = self._read()
        self.loopback = is_loopback(config.host)
        if not self.loopback and not self._credentials and not config.tls_client_ca:
            log.warning(
                "the exporter listens on %s without authentication: whoever reaches it reads recordings and "
                "diagnoses; set bearer_token_file, basic_auth_user or tls_client_ca",
                config.host or "all addresses",
            )

    def refusal(self, target: str, host: str, authorization: str) -> tuple[HTTPStatus, str] | None:
        """Why a request is refused; None when it is let in."""
        if self.loopback and host and not is_loopback(_host_name(host)):
            # a page from elsewhere whose name was pointed at this machine (DNS rebinding)
            return HTTPStatus.MISDIRECTED_REQUEST, "this exporter serves this machine only; ask for localhost"
        if self._files and urlsplit(target).path not in OPEN_PATHS:
            scheme, _, secret = authorization.partition(" ")
            given = f"{scheme.lower()} {secret.strip()}".encode("utf-8", "replace")
            # every secret is compared, so that the time says nothing
            if not max([hmac.compare_digest(given, each) for each in self._current()]):
                return HTTPStatus.UNAUTHORIZED, "credentials are required"
        return None

    def _current(self) -> tuple[bytes, ...]:
        """The credentials as they are in their files now; those before while a file cannot be read."""
        versions = self._versions()
        if versions != self._read_at:
            self._read_at = versions
            try:
                self._credentials = self._read()
            except UserError as error:
                log.warning("%s; the credentials before go on being valid", error)
        return self._credentials

    def _versions(self) -> list[tuple[int, int, int] | None]:
        found: list[tuple[int, int, int] | None] = []
        for file in self._files:
            try:
                status = Path(file).stat()
                found.append((status.st_mtime_ns, status.st_size, status.st_ino))
            except OSError:
                found.append(None)
        return found

    def _read(self) -> tuple[bytes, ...]:
        config = self._config
        named = authorizations(config.basic_auth_user, config.basic_auth_password_file, config.bearer_token_file)
        pairs = (each.partition(" ") for each in named)
        return tuple(f"{scheme.lower()} {secret}".encode() for scheme, _, secret in pairs)


def tls_context(config: Config) -> ssl.SSLContext | None:
    """For the settings' certificate, and client certificates where asked for; None without one. Raises UserError."""
    if not config.tls_certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(config.tls_certificate, config.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"cannot use the certificate {config.tls_certificate}: {error}") from None
    if config.tls_client_ca:
        try:
            context.load_verify_locations(config.tls_client_ca)
        except (OSError, ssl.SSLError) as error:
            raise UserError(f"cannot use the authority {config.tls_client_ca}: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def is_loopback(host: str) -> bool:
    """Whether a name or an address without its port is this machine's loopback."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _host_name(host: str) -> str:
    """The name in a Host header: without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
