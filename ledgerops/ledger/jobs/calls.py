"""Calls to a slow service outside, many at a time, that never fail the batch.

Each Python worker has its own threads and connections, which outlive a batch because Spark reuses its workers. What
cannot be had is a `Failure` with a reason in place of a result: a call that timed out on each attempt, was refused, or
did not come to its turn within the time that the caller has.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any, TypeVar

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, MaxRetryError, NewConnectionError, ReadTimeoutError

Question = TypeVar("Question")
Reply = TypeVar("Reply")

NO_TIME = "no time left"
TEMPORARY = (429, 500, 502, 503, 504)  # worth another attempt; other 4xx say that the question is at fault


@dataclass(frozen=True)
class Limits:
    """How much a worker asks of the service, and how long it waits."""

    concurrency: int = 16  # calls at the same time; times the cores, it is what the service has to bear
    timeout_seconds: float = 1.0  # for each attempt, apart for connecting and for the answer
    retries: int = 2  # attempts after the first
    # before the second retry, doubling from there; with as much jitter, or all come back at once
    pause_seconds: float = 0.1
    max_pause_seconds: float = 2.0
    total_seconds: float = 30.0  # for everything that one partition of a batch asks


@dataclass(frozen=True)
class Failure:
    """Why there is no result. There are few different reasons, so that they can be counted."""

    reason: str


class CallFailed(Exception):
    """A call without a result; the message is the reason."""


class Calls:
    """Threads and connections to the service at `url`. User and password in it are sent, and appear in no message."""

    def __init__(self, url: str, limits: Limits) -> None:
        address = urllib3.util.parse_url(url)
        self.url = address._replace(auth=None).url.rstrip("/")
        self.limits = limits
        self._headers = {"Content-Type": "application/json"}
        if address.auth:
            self._headers |= urllib3.make_headers(basic_auth=address.auth)
        self._threads = ThreadPoolExecutor(limits.concurrency, thread_name_prefix="calls")
        self._connections = urllib3.PoolManager(
            num_pools=1,
            maxsize=limits.concurrency,
            timeout=urllib3.Timeout(connect=limits.timeout_seconds, read=limits.timeout_seconds),
            retries=urllib3.Retry(
                total=limits.retries,
                redirect=False,
                backoff_factor=limits.pause_seconds,
                backoff_jitter=limits.pause_seconds,
                backoff_max=limits.max_pause_seconds,
                status_forcelist=TEMPORARY,
                allowed_methods=None,  # POST too: a score asked for twice is the same score
                raise_on_status=False,
                respect_retry_after_header=False,  # it could ask for an hour
            ),
        )

    def deadline(self) -> float:
        """When the time of a partition that begins now is over; for `run`."""
        return time.monotonic() + self.limits.total_seconds

    def run(
        self, ask: Callable[[Question], Reply], questions: Sequence[Question], deadline: float
    ) -> list[Reply | Failure]:
        """`ask` of each question, at most `concurrency` at a time; results in the order of the questions.

        Comes back at the deadline at the latest. A call that is under way then runs out in its thread, and is ignored.
        """
        futures = [self._threads.submit(_guarded, ask, question, deadline) for question in questions]
        wait(futures, max(0.0, deadline - time.monotonic()))
        return [future.result() if future.done() else Failure(NO_TIME) for future in futures]

    def post(self, path: str, document: Mapping[str, Any]) -> Any:
        """The JSON that the service answers. Raises CallFailed after the last attempt."""
        try:
            answer = self._connections.request(
                "POST", f"{self.url}{path}", body=json.dumps(document).encode(), headers=self._headers
            )
        except MaxRetryError as error:
            raise CallFailed(self._reason(error.reason)) from None
        except HTTPError as error:
            raise CallFailed(self._reason(error)) from None
        if answer.status != HTTPStatus.OK:
            raise CallFailed(f"status {answer.status}")
        try:
            return json.loads(answer.data)
        except ValueError:
            raise CallFailed("answer is not JSON") from None

    def close(self) -> None:
        """Cancels the calls that have not started and drops the connections. Does not wait for running calls."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._connections.clear()

    def _reason(self, error: Exception | None) -> str:
        if isinstance(error, NewConnectionError):  # first: it is a ConnectTimeoutError too
            return "cannot connect"
        if isinstance(error, ReadTimeoutError | ConnectTimeoutError):
            return f"no answer within {self.limits.timeout_seconds:g} s"
        return "connection lost"


@lru_cache(maxsize=4)
def open_calls(url: str, limits: Limits) -> Calls:
    """This process's threads and connections to the service."""
    # it would tell each retry on stderr, thousands in a batch while the service is away; the reasons are in the rows
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    return Calls(url, limits)


def _guarded(ask: Callable[[Question], Reply], question: Question, deadline: float) -> Reply | Failure:
    if time.monotonic() >= deadline:
        return Failure(NO_TIME)
    try:
        return ask(question)
    except CallFailed as failed:
        return Failure(str(failed))
    except Exception as error:  # an answer of another shape, say: the other calls are as good as before
        return Failure(f"unexpected answer ({type(error).__name__})")
