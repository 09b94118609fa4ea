"""Spark's REST interface (the UI's /api/v1), asked with a short limit and no proxy."""

from __future__ import annotations

from typing import Any
from urllib.request import ProxyHandler, build_opener

import orjson

SECONDS = 2.0  # a UI that needs longer is busy, and has better things to do
FIRST_SECONDS = 10.0  # the first answer is late: the UI sets its REST part up for it


class SparkRest:
    """One application. `get` raises OSError when nobody answers and ValueError when the answer is no JSON."""

    def __init__(self, ui_url: str, app_id: str) -> None:
        self.base = f"{ui_url.rstrip('/')}/api/v1/applications/{app_id}"
        self.requests = 0
        self._warm = False
        self._opener = build_opener(ProxyHandler({}))

    def get(self, path: str) -> Any:
        self.requests += 1
        with self._opener.open(self.base + path, timeout=SECONDS if self._warm else FIRST_SECONDS) as answer:
            found = orjson.loads(answer.read())
        self._warm = True
        return found
