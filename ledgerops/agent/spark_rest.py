"""Spark's REST interface (the UI's /api/v1), where the driver's JVM cannot be asked: of a Spark Connect server.

Asked without a proxy and with a long time limit: a request that is broken off makes Spark's Jetty log a stack trace in
the job's output, and its answer is lost; only a collector's own thread waits for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import orjson

from ledgerops.agent.spark_status import FAILED, QUANTILES, SqlExecution, rest_instant

MAX_ANSWER_BYTES = 64 * 1024 * 1024  # a page about thousands of executors has a few megabytes
ANSWER_SECONDS = 60.0  # a driver on a busy machine takes many seconds; after a minute it will not answer any more


class SparkRest:
    """One application."""

    def __init__(self, ui_url: str, app_id: str) -> None:
        self.base = f"{ui_url.rstrip('/')}/api/v1/applications/{app_id}"
        self.asked = 0
        self._open = build_opener(ProxyHandler({})).open

    def executions(self, offset: int, length: int) -> Sequence[SqlExecution]:
        """As SparkStatus says. Spark builds the plan of each anew."""
        found = self._get(f"/sql?details=false&planDescription=false&offset={offset}&length={length}")
        return [parse_execution(each) for each in found]

    def execution(self, number: int) -> SqlExecution | None:
        """As SparkStatus says."""
        found = self._kept(f"/sql/{number}?details=false&planDescription=false")
        return None if found is None else parse_execution(found)

    def job(self, number: int) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self._kept(f"/jobs/{number}")
        return found

    def stage(self, number: int, with_tasks: bool) -> Mapping[str, Any] | None:
        quantiles = ",".join(map(str, QUANTILES))
        asked = "" if with_tasks else f"&taskStatus={FAILED}&withSummaries=true&quantiles={quantiles}"
        attempts: Sequence[Mapping[str, Any]] | None = self._kept(f"/stages/{number}?details=true{asked}")
        return attempts[-1] if attempts else None

    def tasks(self, stage: int, attempt: int, most: int) -> Sequence[Mapping[str, Any]]:
        return list(self._get(f"/stages/{stage}/{attempt}/taskList?offset=0&length={most}"))

    def metrics(self, execution: int) -> Iterable[tuple[str, str]]:
        nodes = (self._kept(f"/sql/{execution}?details=true&planDescription=false") or {}).get("nodes", ())
        return [(each.get("name", ""), each.get("value", "")) for node in nodes for each in node["metrics"]]

    def executors(self) -> Sequence[Mapping[str, Any]]:
        return list(self._get("/allexecutors"))

    def _kept(self, path: str) -> Any:
        """The decoded JSON at `path`; None when Spark does not keep that."""
        try:
            return self._get(path)
        except HTTPError as error:
            if error.code == 404:
                return None
            raise

    def _get(self, path: str) -> Any:
        """The decoded JSON at `path`, which is appended to the application's address. Waits at most ANSWER_SECONDS."""
        self.asked += 1
        address = urlsplit(self.base)
        if address.scheme not in ("http", "https") or not address.netloc:
            raise ValueError(f"{self.base} is no address of a Spark UI")
        try:
            with self._open(self.base + path, timeout=ANSWER_SECONDS) as answer:
                content = answer.read(MAX_ANSWER_BYTES + 1)
        except HTTPError as error:
            error.close()
            raise
        except URLError as error:  # nothing listens there
            raise OSError(f"{self.base}: {error.reason}") from error
        except HTTPException as error:
            raise OSError(f"{self.base}: {error!r}") from error
        if len(content) > MAX_ANSWER_BYTES:
            raise ValueError(f"the answer has more than {MAX_ANSWER_BYTES} bytes")
        return orjson.loads(content)


def parse_execution(data: Mapping[str, Any]) -> SqlExecution:
    """One entry of `/sql`."""
    return SqlExecution(
        number=int(data["id"]), description=str(data.get("description", "")),
        jobs=tuple(int(job) for kind in ("successJobIds", "failedJobIds") for job in data.get(kind, ())),
        is_running=data.get("status") == "RUNNING", started=rest_instant(data.get("submissionTime")) or 0.0,
        seconds=float(data.get("duration") or 0) / 1000, error=data.get("errorMessage") or None,
    )  # fmt: skip
