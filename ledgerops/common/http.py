"""HTTP requests that end in time, with the credentials of our exporters.

These are the settings that the exporter reads, from ledgerops.toml or variables: bearer_token_file, or basic_auth_user
and basic_auth_password_file. LEDGEROPS_CLIENT_CERTIFICATE and LEDGEROPS_CLIENT_KEY name a certificate of the client.
For a server's certificate of a private authority OpenSSL's SSL_CERT_FILE holds.
"""

import http.client
import os
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from ledgerops.common.credentials import Secrets
from ledgerops.common.deadline import within
from ledgerops.common.http_access import is_loopback
from ledgerops.config import load
from ledgerops.errors import UserError

QUIET_SECONDS = 10.0  # without a byte
CALL_SECONDS = 120.0  # for a whole request: a recording may have many megabytes
MAX_BYTES = 256 * 1024 * 1024  # of an answer; an exporter keeps less
CHUNK_BYTES = 65_536


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Credentials are for the address that was given, and for no other; and a POST that is redirected becomes a GET,
    whose 200 delivers nothing."""

    def redirect_request(self, *args: Any) -> None:
        return None


class _Noting(urllib.request.AbstractHTTPHandler):
    """Notes the connection of a request, so that `fetch` can end one that outlasts its time."""

    def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> Any:
        def connection(*args: Any, **kwargs: Any) -> Any:
            made = http_class(*args, **kwargs)
            req.__dict__["connection"] = made
            return made

        return super().do_open(connection, req, **options)


class Http(_Noting, urllib.request.HTTPHandler):
    """Requests without TLS."""


class Https(_Noting, urllib.request.HTTPSHandler):
    """Requests with TLS."""


def _end_connection(request: urllib.request.Request) -> None:
    """Ends the thread that still waits for a peer that sends a byte of its headers now and then."""
    socket_ = getattr(request.__dict__.get("connection"), "sock", None)
    if socket_ is not None:
        with suppress(OSError):
            socket_.shutdown(socket.SHUT_RDWR)


def opener(address: str, *, certificate: str | None = None, key: str | None = None) -> urllib.request.OpenerDirector:
    """An opener for an address that follows no redirect. A server of this machine is never behind a proxy, whatever the
    environment says. Raises UserError for an unusable `certificate`."""
    handlers: list[urllib.request.BaseHandler] = [NoRedirect(), Http()]
    if is_loopback(urlsplit(address).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    context = None
    if certificate:
        context = ssl.create_default_context()
        try:
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise UserError(f"cannot use the client certificate {certificate}: {error}") from None
    return urllib.request.build_opener(*handlers, Https(context=context))


def fetch(
    through: urllib.request.OpenerDirector,
    request: urllib.request.Request,
    *,
    seconds: float,
    quiet_seconds: float = QUIET_SECONDS,
    max_bytes: int = MAX_BYTES,
) -> tuple[bytes, Message]:
    """The body and the headers of an answer that is whole within `seconds` and has at most `max_bytes`. Raises
    HTTPError for a status that is not 2xx, OSError when there is no such answer, ValueError for no address."""
    end = time.monotonic() + seconds

    def read() -> tuple[bytes, Message]:
        parts, size = [], 0
        try:
            opened = through.open(request, timeout=max(0.1, min(quiet_seconds, seconds)))
        except urllib.error.HTTPError as error:
            error.close()  # it is the open answer, too, and lives as long as what is raised from it
            raise
        with opened as answer:
            while part := answer.read1(CHUNK_BYTES):
                parts.append(part)
                size += len(part)
                if size > max_bytes:
                    raise OSError(f"the answer has more than {max_bytes} bytes")
                if time.monotonic() > end:
                    raise TimeoutError(f"no answer within {seconds:.3g} s")
            if answer.length:  # `read1` takes an early end for the end
                raise ConnectionError(f"the answer ended early: {answer.length} bytes are missing")
            return b"".join(parts), answer.headers

    try:
        return within(read, seconds)
    except TimeoutError:
        _end_connection(request)
        raise
    except http.client.HTTPException as error:  # neither an OSError nor a ValueError: half an answer, or none of HTTP
        raise OSError(" ".join(str(error).split()) or type(error).__name__) from None


def ask(
    address: str,
    timeout: float = QUIET_SECONDS,
    environ: Mapping[str, str] = os.environ,
    *,
    seconds: float = CALL_SECONDS,
    max_bytes: int = MAX_BYTES,
) -> tuple[bytes, Message]:
    """The body and the headers of an exporter's answer; `timeout` is in seconds without a byte. Raises UserError when
    the exporter refuses, OSError or ValueError when none answers."""
    check_address(address, "LEDGEROPS_BASIC_AUTH_USER and LEDGEROPS_BASIC_AUTH_PASSWORD_FILE")
    certificate, key = environ.get("LEDGEROPS_CLIENT_CERTIFICATE"), environ.get("LEDGEROPS_CLIENT_KEY")
    through = opener(address, certificate=certificate, key=key)
    request = urllib.request.Request(address, headers=credentials(environ))
    try:
        return fetch(through, request, seconds=seconds, quiet_seconds=timeout, max_bytes=max_bytes)
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise UserError(
                f"{address} requires credentials; set LEDGEROPS_BEARER_TOKEN_FILE, or LEDGEROPS_BASIC_AUTH_USER and "
                "LEDGEROPS_BASIC_AUTH_PASSWORD_FILE, as for the exporter, or the same in ledgerops.toml"
            ) from None
        if error.code == 503:
            raise UserError(f"{address} answers 503: it gets too many requests at the moment; try again") from None
        raise UserError(f"{address} answers {error.code} {str(error.reason).lower()}; is it an exporter?") from None


def credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """The header of the settings in ledgerops.toml and the environment, that of a token first. Raises UserError."""
    settings = load(None, environ)
    user, password = settings.basic_auth_user, settings.basic_auth_password_file
    return Secrets(token_file=settings.bearer_token_file, user=user, password_file=password).headers()


def check_address(address: str, instead: str) -> None:
    """Raises UserError for an address with a user name or password in it, which messages and logs would repeat."""
    try:
        parts = urlsplit(address)
        inside = parts.username is not None or parts.password is not None
    except ValueError:
        return  # who opens it says what is wrong
    if inside:
        raise UserError(f"the address of {parts.hostname} holds credentials; leave them out and set {instead}")
