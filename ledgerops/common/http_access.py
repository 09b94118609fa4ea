"""Who may ask one of our HTTP servers: the Host header on loopback, the credentials, and the certificates."""

import hmac
import ipaddress
import logging
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

from ledgerops.common.credentials import Reread, authorizations
from ledgerops.errors import UserError

log = logging.getLogger("ledgerops")

OPEN_PATHS = ("/healthz",)  # for probes without credentials; it shows nothing about the queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Where a server listens and what it asks for; secrets and certificates are files. `token` is one as text."""

    host: str
    user: str | None = None
    password_file: str | None = None
    token_file: str | None = None
    token: str | None = None
    certificate: str | None = None
    key: str | None = None
    client_ca: str | None = None


class Access:
    """Lets requests in or refuses them. Raises UserError on unreadable secrets. Where the server is open to the network
    without authentication, a warning says what `risk` is and how to end it."""

    def __init__(self, rules: Rules, risk: str) -> None:
        self._credentials = Reread((rules.password_file, rules.token_file), lambda: _credentials(rules))
        self.loopback = is_loopback(rules.host)
        if not self.loopback and not self._credentials.current() and not rules.client_ca:
            log.warning("listening on %s without authentication: %s", rules.host or "all addresses", risk)

    def refusal(self, target: str, host: str, authorization: str) -> tuple[HTTPStatus, str] | None:
        """Why a request is refused; None when it is let in."""
        if self.loopback and host and not is_loopback(_parts(f"//{host}").hostname or ""):
            # a page from elsewhere whose name was pointed at this machine (DNS rebinding)
            return HTTPStatus.MISDIRECTED_REQUEST, "this address serves this machine only; ask for localhost"
        known = self._credentials.current()
        if known and _parts(target).path not in OPEN_PATHS:
            scheme, _, secret = authorization.partition(" ")
            given = f"{scheme.lower()} {secret.strip()}".encode("utf-8", "replace")
            # every secret is compared, so that the time reveals nothing
            if not max([hmac.compare_digest(given, each) for each in known]):
                return HTTPStatus.UNAUTHORIZED, "credentials are required"
        return None


def _credentials(rules: Rules) -> tuple[bytes, ...]:
    named = authorizations(rules.user, rules.password_file, rules.token_file)
    pairs = [each.partition(" ") for each in named]
    if rules.token:
        pairs.append(("Bearer", " ", rules.token))
    return tuple(f"{scheme.lower()} {secret}".encode() for scheme, _, secret in pairs)


def tls_contexts(rules: Rules) -> Reread[ssl.SSLContext] | None:
    """The TLS context for the rules' certificate, new when its files change; None without TLS. Raises UserError."""
    if not rules.certificate:
        return None
    return Reread((rules.certificate, rules.key, rules.client_ca), lambda: _tls_context(rules, rules.certificate or ""))


def _tls_context(rules: Rules, certificate: str) -> ssl.SSLContext:
    """With client certificates where asked for. Raises UserError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, rules.key)
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"cannot use the certificate {certificate}: {error}") from None
    if rules.client_ca:
        try:
            context.load_verify_locations(rules.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise UserError(f"cannot use the authority {rules.client_ca}: {error}") from None
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


def _parts(address: str) -> SplitResult:
    """The parts of an address; all empty for what is none."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
