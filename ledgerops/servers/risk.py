"""A risk service for trials and tests: scores transactions over HTTP, as slow and unreliable as it is configured to be.

    POST /scores {"transactions": [{...}, ...]}      {"scores": [{...}, ...]}, in their order, 1000 at most

A transaction is {"transaction_id": "T1", "type": "Debit", "amount": "12.50"}, its answer {"transaction_id": "T1",
"score": 0.2731}. One that cannot be scored has `error`, the reason, in place of `score`.
The score is a function of the transaction alone: half of crc32(transaction_id) / 2^32, plus 0.3 x amount / 100,000 (at
most 0.3), plus 0.2 for a debit; rounded to four digits. `RiskService` runs the service as a process, which ends with
its parent.
"""

import json
import math
import os
import random
import socket
import sys
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from ledgerops.errors import UserError
from ledgerops.servers import process
from ledgerops.servers.background import Quiet

MAX_TRANSACTIONS = 1000  # in a call
HANG_SECONDS = 60.0  # how long a call that hangs keeps its connection
START_SECONDS = 30.0
LARGE_AMOUNT = 100_000.0  # from which a larger one adds nothing to the score


class NotScorable(ValueError):
    """A transaction that has no score; the message says why."""


def score(transaction: Mapping[str, Any]) -> float:
    """The score by the formula above, between 0 and 1. Raises NotScorable."""
    name, amount = transaction.get("transaction_id"), transaction.get("amount")
    if not isinstance(name, str) or not name:
        raise NotScorable("no transaction_id")
    if amount is None:
        raise NotScorable("no amount")
    try:
        size = min(abs(float(amount)) / LARGE_AMOUNT, 1.0)
        if math.isnan(size):
            raise ValueError
    except (TypeError, ValueError):
        raise NotScorable("amount is not a number") from None
    debit = 0.2 if transaction.get("type") == "Debit" else 0.0
    return round(0.5 * zlib.crc32(name.encode()) / 2**32 + 0.3 * size + debit, 4)


@dataclass(frozen=True)
class Behaviour:
    """How fast and how reliably the service answers. Shares are of calls; the seed decides the outcome of each call."""

    latency_seconds: float = 0.005  # before each answer
    fail_share: float = 0.0  # answered with status 503
    hang_share: float = 0.0  # not answered for HANG_SECONDS
    seed: int = 0


class ScoreServer(ThreadingHTTPServer):
    """Listens on a port of 127.0.0.1 and answers as a behaviour says."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, behaviour: Behaviour) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.behaviour, self._random = behaviour, random.Random(behaviour.seed)

    @property
    def url(self) -> str:
        """The address of the service, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def next_outcome(self) -> str:
        """The outcome of the next call: "hang", "fail" or "answer". Safe for several threads."""
        drawn = self._random.random()
        if drawn < self.behaviour.hang_share:
            return "hang"
        return "fail" if drawn < self.behaviour.hang_share + self.behaviour.fail_share else "answer"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is no event."""


class Handler(Quiet):
    """The call of the service; see the module."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet
    timeout = 300.0
    server: ScoreServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if urlsplit(self.path).path != "/scores":
            self._answer(HTTPStatus.NOT_FOUND, {"error": f"no {self.path}"})
            return
        try:
            transactions = json.loads(body)["transactions"]
            if not all(isinstance(one, dict) for one in transactions):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            self._answer(HTTPStatus.BAD_REQUEST, {"error": 'expected {"transactions": [{...}, ...]}'})
            return
        if len(transactions) > MAX_TRANSACTIONS:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": f"more than {MAX_TRANSACTIONS} transactions"})
        elif self._is_answered():
            self._answer(HTTPStatus.OK, {"scores": [_scored(one) for one in transactions]})

    def _is_answered(self) -> bool:
        """Waits, and draws whether this call gets its answer; one that does not has been dealt with."""
        outcome = self.server.next_outcome()
        time.sleep(HANG_SECONDS if outcome == "hang" else self.server.behaviour.latency_seconds)
        if outcome == "hang":
            self.close_connection = True
        elif outcome == "fail":
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "configured to fail"})
        return outcome == "answer"

    def _answer(self, status: HTTPStatus, document: Mapping[str, Any]) -> None:
        self.reply(status, json.dumps(document).encode(), {"Content-Type": "application/json"})


def _scored(transaction: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"transaction_id": transaction.get("transaction_id"), "score": score(transaction)}
    except NotScorable as problem:
        return {"transaction_id": transaction.get("transaction_id"), "error": str(problem)}


class RiskService(process.Server):
    """The service as a process: started at once, stopped by `stop`, by the end of a `with`, or with this process."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self.url = ""
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts it, on the port that it had before if it had one. Raises UserError when it does not come up."""
        port = urlsplit(self.url).port or process.free_port()
        root = str(Path(__file__).parents[2])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
        command = [sys.executable, "-m", "ledgerops.servers.risk", str(port), json.dumps(asdict(self.behaviour))]
        self._process = process.Process("the risk service", command, Path(os.devnull), env=environment)
        self.url = f"http://127.0.0.1:{port}"
        try:
            self._process.wait_until(lambda: _listens(port), START_SECONDS)
        except UserError:
            raise UserError("the risk service did not start; run python -m ledgerops.servers.risk to see why") from None


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def main(port: str = "0", behaviour: str = "{}") -> None:
    """Prints its address, then serves until it is interrupted. Port 0: any free one; the behaviour is JSON."""
    server = ScoreServer(int(port), Behaviour(**json.loads(behaviour)))
    print(server.url, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main(*sys.argv[1:])
