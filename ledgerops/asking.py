"""One request to an exporter, with the credentials that its own settings name: LEDGEROPS_BEARER_TOKEN_FILE, or
LEDGEROPS_BASIC_AUTH_USER and LEDGEROPS_BASIC_AUTH_PASSWORD_FILE. For a certificate of a private authority OpenSSL's
SSL_CERT_FILE holds."""

from __future__ import annotations

import base64
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ledgerops.errors import UserError

TIMEOUT = 10.0  # seconds without a byte


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **named: Any) -> None:
        """None: credentials are for the address that was given, and for no other."""


def ask(address: str, timeout: float = TIMEOUT, environ: Mapping[str, str] = os.environ) -> tuple[bytes, Message]:
    """The body and the headers of the answer.

    Raises UserError when the exporter refuses, OSError or ValueError when none answers.
    """
    # an exporter of this machine is never behind a proxy, whatever the environment says
    local = urlsplit(address).hostname in ("127.0.0.1", "localhost", "::1")
    opener = urllib.request.build_opener(_Stay, *([urllib.request.ProxyHandler({})] if local else []))
    request = urllib.request.Request(address, headers=credentials(environ))
    try:
        with opener.open(request, timeout=timeout) as answer:
            return answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise UserError(
                f"{address} asks for credentials; set LEDGEROPS_BEARER_TOKEN_FILE, or LEDGEROPS_BASIC_AUTH_USER and "
                "LEDGEROPS_BASIC_AUTH_PASSWORD_FILE, as for the exporter"
            ) from None
        raise UserError(f"{address} answers {error.code} {str(error.reason).lower()}; is it an exporter?") from None


def credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """The header that the settings in the environment ask for. Raises UserError when a file cannot be read."""
    if token := environ.get("LEDGEROPS_BEARER_TOKEN_FILE"):
        return {"Authorization": f"Bearer {_secret(token)}"}
    user, password = (environ.get(f"LEDGEROPS_BASIC_AUTH_{name}") for name in ("USER", "PASSWORD_FILE"))
    if user and password:
        told = base64.b64encode(f"{user}:{_secret(password)}".encode()).decode()
        return {"Authorization": f"Basic {told}"}
    return {}


def _secret(file: str) -> str:
    try:
        return Path(file).read_text("utf-8").strip()
    except OSError as error:
        raise UserError(f"cannot read {file}: {(error.strerror or str(error)).lower()}") from None
