"""Senders: any service that apprise supports (chat, mail, pagers), and a plain webhook.

A sender delivers a message or raises an exception.
"""

import json
import re
import urllib.request
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Protocol
from urllib.parse import unquote, urlsplit

from ledgerops.common.credentials import basic
from ledgerops.common.http import fetch, opener
from ledgerops.errors import UserError
from ledgerops.notify.message import Message

DELIVERY_SECONDS = 10.0  # for a whole delivery to a webhook
MAX_ANSWER_BYTES = 1024 * 1024
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}")  # of a URL; anything else may be a secret, and is not repeated


class Sender(Protocol):
    """`name` identifies the sender in the queue and in logs; it has no secret."""

    name: str

    def send(self, message: Message) -> None:
        """Delivers, or raises an exception that says why not."""
        ...


class Webhook:
    """POSTs the message as JSON: {"title", "body", "severity", "resolved"}."""

    def __init__(self, url: str, number: int = 1) -> None:
        try:
            parts = urlsplit(url)
            complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # what is wrong would quote the URL
            complete = False
        if not complete:
            raise UserError(f"cannot send to sender {number}: a webhook is http://HOST/PATH or https://HOST/PATH")
        self._headers = {"Content-Type": "application/json"}
        if parts.username is not None:  # urllib would take them for a part of the host
            self._headers["Authorization"] = basic(unquote(parts.username), unquote(parts.password or ""))
        self._url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self.name = f"webhook {parts.hostname} {number}"

    def send(self, message: Message) -> None:
        """Returns once the server has answered 2xx. Raises OSError: HTTPError for any other status, a redirect too."""
        content = json.dumps(asdict(message)).encode()
        request = urllib.request.Request(self._url, content, self._headers, method="POST")
        fetch(opener(self._url), request, seconds=DELIVERY_SECONDS, max_bytes=MAX_ANSWER_BYTES)


class Apprise:
    """One apprise URL: mailto://, slack://, msteams://, pagerduty:// and many more."""

    def __init__(self, url: str, number: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # apprise's own imports
            import apprise
        self._apprise = apprise
        self._sender = apprise.Apprise()
        scheme, found, _ = url.partition("://")
        if not found or not SCHEME.fullmatch(scheme):
            raise UserError(
                f"cannot send to sender {number}: not a URL; give one such as mailto://USER@HOST or https://HOST/PATH"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it loads its services only now
            supported = self._sender.add(url)
        if not supported:  # the URL holds secrets: it is not repeated
            raise UserError(
                f"apprise does not support the {scheme}:// URL of sender {number}; see its list of services"
            )
        self.name = f"{scheme} {number}"

    def send(self, message: Message) -> None:
        """Returns once apprise reports success. Raises ConnectionError otherwise; the reason is in apprise's log."""
        kinds = self._apprise.NotifyType
        kind = kinds.SUCCESS if message.resolved else kinds.FAILURE if message.severity == "critical" else kinds.WARNING
        delivered = self._sender.notify(
            title=message.title,
            body=message.body or message.title,
            notify_type=kind,
            body_format=self._apprise.NotifyFormat.TEXT,  # a service that takes HTML gets it escaped
        )
        if not delivered:
            raise ConnectionError("not delivered; see the log of apprise")


def open_senders(urls: Sequence[str]) -> list[Sender]:
    """A sender for each URL. Raises UserError for one that nothing understands."""
    return [
        Webhook(url, number) if url.startswith(("http://", "https://")) else Apprise(url, number)
        for number, url in enumerate(urls, start=1)
    ]
