"""Finds the driver of a query and asks it for its diagnosis: from a list of exporters, or through Prometheus."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledgerops.notify.senders import direct

SECONDS = 4.0  # for each driver: an incident's message must not wait for one that is gone
MOST_SECONDS = 12.0  # for all of them
MOST_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Found:
    """A query's part of the diagnosis document, or why there is none."""

    diagnosis: Mapping[str, Any] | None
    exporter: str | None = None
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """`exporters` are base URLs; with `prometheus` the instances that have the query are asked first."""

    exporters: Sequence[str] = ()
    prometheus: str | None = None
    token: str | None = None  # bearer token of the exporters
    scheme: str = "http"  # of the instances that Prometheus names: it tells host and port only
    seconds: float = SECONDS

    def diagnose(self, query: str, job: str) -> Found:
        """Asks until a driver knows the query. Never raises."""
        troubles: list[str] = []
        asked: set[str] = set()
        end = time.monotonic() + MOST_SECONDS
        for exporter in [*self._instances(query, job, troubles), *self.exporters]:
            base = exporter.rstrip("/")
            if base in asked:
                continue
            if time.monotonic() > end:
                troubles.append("there was no time for the others")
                break
            asked.add(base)
            try:
                document = self._get(f"{base}/diagnosis?{urllib.parse.urlencode({'query': query})}", self.token)
                for each in document["queries"]:
                    if each["query"] == query:
                        return Found(each, base)
                troubles.append(f"{base} does not know {query}")
            except Exception as error:  # whatever listens there: the alert goes out without it
                troubles.append(f"{base}: {_reason(error)}")
        return Found(None, None, "; ".join(troubles)[:200] or "no exporter is configured")

    def _instances(self, query: str, job: str, troubles: list[str]) -> list[str]:
        if self.prometheus is None:
            return []
        quoted = query.replace("\\", "\\\\").replace('"', '\\"')
        matchers = f'query="{quoted}"' + (f', job="{job}"' if job else "")
        # of drivers that have had the query, the one where a run is on comes first
        asked = urllib.parse.urlencode({"query": f"sort_desc(ledgerops_query_active{{{matchers}}})"})
        try:
            answer = self._get(f"{self.prometheus.rstrip('/')}/api/v1/query?{asked}", None)
            return [f"{self.scheme}://{series['metric']['instance']}" for series in answer["data"]["result"]]
        except Exception as error:
            troubles.append(f"Prometheus: {_reason(error)}")
            return []

    def _get(self, url: str, token: str | None) -> Any:
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
        with direct.open(request, timeout=self.seconds) as answer:
            return json.loads(answer.read(MOST_BYTES))


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
