"""One request to an exporter, with the credentials that its own settings name: LEDGEROPS_BEARER_TOKEN_FILE, or
LEDGEROPS_BASIC_AUTH_USER and LEDGEROPS_BASIC_AUTH_PASSWORD_FILE. For a certificate of a private authority OpenSSL's
SSL_CERT_FILE holds."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from ledgerops.common.credentials import authorizations
from ledgerops.errors import UserError

TIMEOUT = 10.0  # seconds without a byte


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Credentials are for the address that was given, and for no other; and a POST that is redirected becomes a GET,
    whose 200 delivers nothing."""

    def redirect_request(self, *args: Any) -> None:
        return None


def ask(address: str, timeout: float = TIMEOUT, environ: Mapping[str, str] = os.environ) -> tuple[bytes, Message]:
    """The body and the headers of the answer.

    Raises UserError when the exporter refuses, OSError or ValueError when none answers.
    """
    # an exporter of this machine is never behind a proxy, whatever the environment says
    local = urlsplit(address).hostname in ("127.0.0.1", "localhost", "::1")
    opener = urllib.request.build_opener(NoRedirect, *([urllib.request.ProxyHandler({})] if local else []))
    request = urllib.request.Request(address, headers=credentials(environ))
    try:
        with opener.open(request, timeout=timeout) as answer:
            return answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        error.close()  # it is the open answer, too, and lives as long as what is raised from it
        if error.code in (401, 403):
            raise UserError(
                f"{address} asks for credentials; set LEDGEROPS_BEARER_TOKEN_FILE, or LEDGEROPS_BASIC_AUTH_USER and "
                "LEDGEROPS_BASIC_AUTH_PASSWORD_FILE, as for the exporter"
            ) from None
        raise UserError(f"{address} answers {error.code} {str(error.reason).lower()}; is it an exporter?") from None
    except http.client.HTTPException as error:  # neither an OSError nor a ValueError: half an answer, or none of HTTP
        raise OSError(" ".join(str(error).split()) or type(error).__name__) from None


def credentials(environ: Mapping[str, str]) -> dict[str, str]:
    """The header that the settings in the environment name, that of a token first. Raises UserError."""
    user, password, token = (
        environ.get(f"LEDGEROPS_{name}")
        for name in ("BASIC_AUTH_USER", "BASIC_AUTH_PASSWORD_FILE", "BEARER_TOKEN_FILE")
    )
    return {"Authorization": named[-1]} if (named := authorizations(user, password, token)) else {}
