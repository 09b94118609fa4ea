"""Finds the driver of a query and asks it for its diagnosis: from a list of exporters, or through Prometheus.

All drivers are asked at the same time, and the whole lookup has a deadline: the alert must go out on time.
"""

import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from ledgerops.common.credentials import Secrets
from ledgerops.common.http import fetch, opener
from ledgerops.model.recording import load_json
from ledgerops.notify.incident import matchers
from ledgerops.notify.outcome import Run

READ_SECONDS = 4.0  # for each read from a driver
LOOKUP_SECONDS = 8.0  # for a whole lookup
MAX_BYTES = 8 * 1024 * 1024  # of an answer
MAX_TROUBLE_CHARACTERS = 200
DEAD_SECONDS = 30.0  # how long a driver, or Prometheus, that did not answer is not asked again
MAX_DRIVERS = 16  # that Prometheus names for one query and that are asked: each takes a thread
REMEMBERED = "12h"  # for so long it is known how a query ended
INSTANCE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")  # of Prometheus' answer: no user, no path
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NO_SECRETS = Secrets()


@dataclass(frozen=True, slots=True)
class LookupResult:
    """A query's part of the diagnosis document, or why there is none."""

    diagnosis: Mapping[str, Any] | None
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

    def diagnose(self, query: str, job: str, app: str = "", end: float | None = None) -> LookupResult:
        """Asks the drivers until one knows the query, or the time is over: `seconds`, or `end` of the monotonic clock.
        Never raises.

        With `app` only drivers of that application count: another one may have a query of the same name. A driver that
        does not say its application counts for every one.
        """
        began = time.monotonic()
        end = began + self.seconds if end is None else end
        troubles: list[str] = []
        given = [base.rstrip("/") for base in self.exporters]
        asked = self._ask(given, query, app, end, troubles)
        named = self._instances(query, job, app, end, troubles)
        asked |= self._ask([base for base in named if base not in given], query, app, end, troubles)
        for base in (each for each in dict.fromkeys([*named, *given]) if each in asked):
            wait([asked[base]], max(0.0, end - time.monotonic()))
            if not asked[base].done():
                if end - began >= min(READ_SECONDS, self.seconds) / 2:  # else it had little time
                    self._silent[base] = time.monotonic() + DEAD_SECONDS
                troubles.append(f"{base} did not answer within {self.seconds:g} s")
            elif (error := asked[base].exception()) is not None:
                troubles.append(f"{base}: {_reason(error)}")
            elif (found := asked[base].result()) is not None:
                return LookupResult(found)
            else:
                troubles.append(f"{base} does not know {query}" + (f" of {app}" if app else ""))
        return LookupResult(None, trouble="; ".join(troubles)[:MAX_TROUBLE_CHARACTERS] or "no exporter is configured")

    def _ask(
        self, bases: Sequence[str], query: str, app: str, end: float, troubles: list[str]
    ) -> dict[str, Future[Mapping[str, Any] | None]]:
        """Asks each driver in a thread of its own: by driver its part of the diagnosis, None if it has none."""

        given = end - time.monotonic()

        def ask(base: str, answer: Future[Mapping[str, Any] | None]) -> None:
            try:
                url = f"{base}/diagnosis?{urllib.parse.urlencode({'query': query})}"
                headers = self.secrets.headers() if self._trusted(base) else {}
                # whoever waits for this answer gives up first
                document = self._get(url, headers, end - time.monotonic() + 1.0)
                self._silent.pop(base, None)
                ours = not app or document.get("app", app) == app
                queries = document["queries"] if ours else ()
                answer.set_result(next((each for each in queries if each["query"] == query), None))
            except Exception as error:  # whatever listens there: the alert goes out without it
                self._note_silence(base, error, given)
                answer.set_exception(error)

        asked = {}
        for base in dict.fromkeys(bases):
            if time.monotonic() < self._silent.get(base, 0.0):
                troubles.append(f"{base} did not answer a moment ago")
                continue
            asked[base] = Future[Mapping[str, Any] | None]()
            threading.Thread(target=ask, args=(base, asked[base]), name="notify-lookup", daemon=True).start()
        return asked

    def _note_silence(self, base: str, error: Exception, given: float) -> None:
        """Asks a server no more for a while, unless it answered, if only with an HTTP error, or had hardly any time:
        `given` seconds."""
        hurried = isinstance(error, TimeoutError) and given < min(READ_SECONDS, self.seconds) / 2
        if isinstance(error, OSError) and not isinstance(error, urllib.error.HTTPError) and not hurried:
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
        selector, given = matchers(query=query, job=job, app=app), end - time.monotonic()
        try:
            found = self._evaluate(f"sort_desc(ledgerops_query_active{{{selector}}})", end)
            named = [series["metric"].get("instance") for series in found]
            hosts = [each for each in named if isinstance(each, str) and INSTANCE.fullmatch(each)]
            if not hosts:
                troubles.append(f"Prometheus knows no driver of {query}" + (f" of {app}" if app else ""))
            return [f"{self.scheme}://{each}" for each in hosts[:MAX_DRIVERS]]
        except Exception as error:
            self._note_silence(self.prometheus, error, given)
            troubles.append(f"Prometheus: {_reason(error)}")
            return []

    def runs(self, job: str, app: str, end: float) -> list[Run] | None:
        """What Prometheus knows of an application's queries, now and since hours; None when it does not answer until
        `end` of the monotonic clock."""
        if self.prometheus is None or time.monotonic() < self._silent.get(self.prometheus, 0.0):
            return None
        active, seen = (
            f"{name}{{{matchers(job=job, app=app)}}}"
            for name in ("ledgerops_query_active", "ledgerops_last_seen_timestamp_seconds")
        )
        asked = {
            "now": active,
            "last": f"last_over_time({active}[{REMEMBERED}])",
            "seen": f"last_over_time({seen}[{REMEMBERED}])",
        }
        known: dict[tuple[str, str], dict[str, float]] = {}
        given = end - time.monotonic()
        try:
            for name, expression in asked.items():
                for series in self._evaluate(expression, end):
                    labels = series["metric"]
                    key = str(labels.get("query", "")), str(labels.get("instance", ""))
                    known.setdefault(key, {})[name] = float(series["value"][1])
        except Exception as error:  # whatever answers there: the message goes out without it
            self._note_silence(self.prometheus, error, given)
            return None
        return [Run(query, instance, **values) for (query, instance), values in sorted(known.items())]

    def _evaluate(self, expression: str, end: float) -> list[Any]:
        """The result of a PromQL expression; raises what the server or the network does."""
        asked = urllib.parse.urlencode({"query": expression})
        url = f"{(self.prometheus or '').rstrip('/')}/api/v1/query?{asked}"
        found: list[Any] = self._get(url, self.prometheus_secrets.headers(), end - time.monotonic())["data"]["result"]
        return found

    def _get(self, url: str, headers: Mapping[str, str], seconds: float) -> Any:
        through = opener(url, certificate=self.certificate, key=self.key)
        request = urllib.request.Request(url, headers=dict(headers))
        body, _ = fetch(through, request, seconds=seconds, quiet_seconds=READ_SECONDS, max_bytes=MAX_BYTES)
        return load_json(body)


def _reason(error: BaseException) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
