"""Spark's REST interface (the UI's /api/v1), asked without a proxy and with a long time limit.

A request that is broken off makes Spark's Jetty log a stack trace in the job's output, and its answer is lost; only a
collector's own thread waits for it. Connections are kept: a new one costs the driver half as much again as an answer.
"""

from __future__ import annotations

from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import orjson

from ledgerops.model.spark_progress import parse_instant

MAX_ANSWER_BYTES = 64 * 1024 * 1024  # a page about thousands of executors has a few megabytes
ANSWER_SECONDS = 60.0  # a driver on a busy machine takes many seconds; after a minute it will not answer any more


class SparkRest:
    """One application. `get` raises OSError without an answer and ValueError when the answer is not JSON."""

    def __init__(self, ui_url: str, app_id: str) -> None:
        self.base = f"{ui_url.rstrip('/')}/api/v1/applications/{app_id}"
        self.requests = 0
        self._address = urlsplit(self.base)
        self._redirect = build_opener(ProxyHandler({}))
        self._is_redirected = False  # as by YARN, whose proxy then answers
        self._idle: list[HTTPConnection] = []  # at most one for each thread that asks
        self._is_closed = False

    def get(self, path: str) -> Any:
        """The decoded JSON at `path`, which is appended to the application's address. Waits at most ANSWER_SECONDS."""
        self.requests += 1
        content = None if self._is_redirected else self._read(path)
        if content is None:
            with self._redirect.open(self.base + path, timeout=ANSWER_SECONDS) as answer:
                content = answer.read(MAX_ANSWER_BYTES + 1)
        if len(content) > MAX_ANSWER_BYTES:
            raise ValueError(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
        return orjson.loads(content)

    def close(self) -> None:
        """Closes the connections that wait for the next request. From now on none is kept."""
        self._is_closed = True
        with suppress(IndexError):  # another thread may bring one back, and close it, meanwhile
            while True:
                self._idle.pop().close()

    def _read(self, path: str) -> bytes | None:
        """The answer by a connection that is kept; None when another address has it."""
        connection = self._connection()
        try:
            answer = _ask(connection, self._address.path + path)
            content = answer.read(MAX_ANSWER_BYTES + 1)
        except (OSError, HTTPException) as error:
            connection.close()
            raise error if isinstance(error, OSError) else OSError(f"{self.base}: {error!r}") from error
        if answer.isclosed():
            self._idle.append(connection)
        else:  # the next answer must not begin with the rest of this one
            connection.close()
        if self._is_closed:  # asked after the connection is back: `close` finds it, or this does
            self.close()
        if answer.status >= 400:
            raise HTTPError(self.base + path, answer.status, answer.reason, answer.headers, None)
        self._is_redirected = answer.status >= 300
        return None if self._is_redirected else content

    def _connection(self) -> HTTPConnection:
        try:
            return self._idle.pop()
        except IndexError:
            if self._address.scheme not in ("http", "https"):  # without a host, this machine would be asked
                raise ValueError(f"{self.base} is no address of a Spark UI") from None
            kind = HTTPSConnection if self._address.scheme == "https" else HTTPConnection
            return kind(self._address.netloc, timeout=ANSWER_SECONDS)


def _ask(connection: HTTPConnection, path: str) -> HTTPResponse:
    """The head of the answer. A connection that the server has closed meanwhile is opened anew, once."""
    is_kept = connection.sock is not None
    try:
        connection.request("GET", path)
        return connection.getresponse()
    except ConnectionError:
        connection.close()
        if not is_kept:
            raise
        connection.request("GET", path)
        return connection.getresponse()


def rest_instant(text: object) -> float | None:
    """Seconds since the epoch from a time such as `2026-01-31T12:00:00.000GMT`; None from anything else."""
    return parse_instant(text.replace("GMT", "Z")) if isinstance(text, str) else None
