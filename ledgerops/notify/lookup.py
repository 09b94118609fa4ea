"""Finds the driver of a query and asks it for its diagnosis: from a list of exporters, or through Prometheus.

All drivers are asked at the same time, and the whole lookup has a deadline: the alert must go out on time.
"""

from __future__ import annotations

import queue
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from ledgerops.common.credentials import Secrets
from ledgerops.common.http import fetch, opener
from ledgerops.model.recording import load_json
from ledgerops.notify.incident import matchers

READ_SECONDS = 4.0  # for each read from a driver
LOOKUP_SECONDS = 8.0  # for a whole lookup
MAX_BYTES = 8 * 1024 * 1024  # of an answer
MAX_TROUBLE_CHARACTERS = 200
DEAD_SECONDS = 30.0  # how long a driver, or Prometheus, that did not answer is not asked again
MAX_DRIVERS = 16  # that Prometheus names for one query and that are asked: each takes a thread
INSTANCE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")  # of Prometheus' answer: no user, no path
NO_SECRETS = Secrets()
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class LookupResult:
    """A query's part of the diagnosis document, or why there is none."""

    diagnosis: Mapping[str, Any] | None
    exporter: str | None = None
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """`exporters` are base URLs; with `prometheus` the drivers that it knows for the query are asked as well.

    The `secrets` are sent to the hosts of `exporters`, to hosts that match a pattern of `token_hosts`, and to this
    machine; to no other host that Prometheus names. Their files are read at each lookup.
    """

    exporters: Sequence[str] = ()
    prometheus: str | None = None
    secrets: Secrets = NO_SECRETS  # of the exporters
    token_hosts: Sequence[str] = ()
    prometheus_secrets: Secrets = NO_SECRETS
    certificate: str | None = None  # of this client, for drivers and a Prometheus that ask for one
    key: str | None = None
    scheme: str = "http"  # of the drivers that Prometheus names: it knows host and port only
    seconds: float = LOOKUP_SECONDS
    _silent: dict[str, float] = field(default_factory=dict)  # driver -> until when it is not asked

    def diagnose(self, query: str, job: str, app: str = "") -> LookupResult:
        """Asks the drivers until one knows the query, or the time is over. Never raises.

        With `app` only drivers of that application count: another one may have a query of the same name. A driver that
        does not say its application counts for every one.
        """
        end = time.monotonic() + self.seconds
        troubles: list[str] = []
        answers: queue.Queue[tuple[str, Any]] = queue.Queue()
        given = [base.rstrip("/") for base in self.exporters]
        asked = self._ask(given, query, app, end, answers, troubles)
        named = self._instances(query, job, app, end, troubles)
        asked |= self._ask([base for base in named if base not in given], query, app, end, answers, troubles)
        ranked = [base for base in dict.fromkeys([*named, *given]) if base in asked]
        got: dict[str, Any] = {}
        while len(got) < len(ranked) and (best := _best(ranked, got)) is None:
            try:
                base, answer = answers.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            got[base] = answer
            if isinstance(answer, Exception):
                troubles.append(f"{base}: {_reason(answer)}")
            elif answer is None:
                troubles.append(f"{base} does not know {query}" + (f" of {app}" if app else ""))
        for base in asked - got.keys() if time.monotonic() >= end else ():
            self._silent[base] = time.monotonic() + DEAD_SECONDS
            troubles.append(f"{base} did not answer within {self.seconds:g} s")
        best = _best([base for base in ranked if base in got], got)
        if best is not None:
            return LookupResult(got[best], best)
        return LookupResult(None, trouble="; ".join(troubles)[:MAX_TROUBLE_CHARACTERS] or "no exporter is configured")

    def _ask(
        self,
        bases: Sequence[str],
        query: str,
        app: str,
        end: float,
        answers: queue.Queue[tuple[str, Any]],
        troubles: list[str],
    ) -> set[str]:
        """Asks each driver in a thread of its own; returns those that are asked."""

        def ask(base: str) -> None:
            try:
                url = f"{base}/diagnosis?{urllib.parse.urlencode({'query': query})}"
                headers = self.secrets.headers() if self._trusted(base) else {}
                # whoever waits for this answer gives up first
                document = self._get(url, headers, end - time.monotonic() + 1.0)
                self._silent.pop(base, None)
                ours = not app or document.get("app", app) == app
                queries = document["queries"] if ours else ()
                answers.put((base, next((each for each in queries if each["query"] == query), None)))
            except Exception as error:  # whatever listens there: the alert goes out without it
                self._note_silence(base, error)
                answers.put((base, error))

        asked = set()
        for base in dict.fromkeys(bases):
            if time.monotonic() < self._silent.get(base, 0.0):
                troubles.append(f"{base} did not answer a moment ago")
                continue
            asked.add(base)
            threading.Thread(target=ask, args=(base,), name="notify-lookup", daemon=True).start()
        return asked

    def _note_silence(self, base: str, error: Exception) -> None:
        """Asks a server no more for a while, unless it answered, if only with an HTTP error."""
        if isinstance(error, OSError) and not isinstance(error, urllib.error.HTTPError):
            self._silent[base] = time.monotonic() + DEAD_SECONDS

    def _trusted(self, base: str) -> bool:
        """Whether a driver may see the token."""
        host = urllib.parse.urlsplit(base).hostname or ""
        known = {urllib.parse.urlsplit(each).hostname for each in self.exporters}
        return host in known or host in LOOPBACK or any(fnmatchcase(host, each) for each in self.token_hosts)

    def _instances(self, query: str, job: str, app: str, end: float, troubles: list[str]) -> list[str]:
        """Base URLs of the drivers that Prometheus knows for the query, the one that runs it first."""
        if self.prometheus is None:
            return []
        if time.monotonic() < self._silent.get(self.prometheus, 0.0):
            troubles.append("Prometheus did not answer a moment ago")
            return []
        selector = matchers(query=query, job=job, app=app)
        asked = urllib.parse.urlencode({"query": f"sort_desc(ledgerops_query_active{{{selector}}})"})
        url = f"{self.prometheus.rstrip('/')}/api/v1/query?{asked}"
        try:
            answer = self._get(url, self.prometheus_secrets.headers(), end - time.monotonic())
            named = [series["metric"].get("instance") for series in answer["data"]["result"]]
            hosts = [each for each in named if isinstance(each, str) and INSTANCE.fullmatch(each)]
            return [f"{self.scheme}://{each}" for each in hosts[:MAX_DRIVERS]]
        except Exception as error:
            self._note_silence(self.prometheus, error)
            troubles.append(f"Prometheus: {_reason(error)}")
            return []

    def _get(self, url: str, headers: Mapping[str, str], seconds: float) -> Any:
        through = opener(certificate=self.certificate, key=self.key)
        request = urllib.request.Request(url, headers=dict(headers))
        body, _ = fetch(through, request, seconds=seconds, quiet_seconds=READ_SECONDS, max_bytes=MAX_BYTES)
        return load_json(body)


def _best(ranked: Sequence[str], got: Mapping[str, Any]) -> str | None:
    """The first driver that knows the query, once all drivers before it have answered."""
    for base in ranked:
        if base not in got:
            return None
        if isinstance(got[base], Mapping):
            return base
    return None


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
