"""Spark's REST interface (the UI's /api/v1), asked without a proxy and with a long time limit.

A request that is broken off makes Spark's Jetty log a stack trace in the job's output, and its answer is lost; only a
collector's own thread waits for it.
"""

from __future__ import annotations

from typing import Any
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
        self._opener = build_opener(ProxyHandler({}))

    def get(self, path: str) -> Any:
        """The decoded JSON at `path`, which is appended to the application's address. Waits at most ANSWER_SECONDS."""
        self.requests += 1
        with self._opener.open(self.base + path, timeout=ANSWER_SECONDS) as answer:
            content = answer.read(MAX_ANSWER_BYTES + 1)
        if len(content) > MAX_ANSWER_BYTES:
            raise ValueError(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
        return orjson.loads(content)


def rest_instant(text: object) -> float | None:
    """Seconds since the epoch from a time such as `2026-01-31T12:00:00.000GMT`; None from anything else."""
    return parse_instant(text.replace("GMT", "Z")) if isinstance(text, str) else None
