"""Fuzzes the HTTP servers: valid, mutated and random requests to an exporter, and webhooks to notify.

    python -m tests.fuzzing.http --requests 1000000 --seconds 3600

No request may raise in a server, get a 500, or leave memory, a thread or a descriptor behind. Ends with the first limit
that is reached. Exit code: 0 when all that held, 1 otherwise.
"""

import json
import logging
import random
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from ledgerops.agent.exporter import Exporter
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.worker import Worker
from ledgerops.common.http_server import Server
from ledgerops.config import Config
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.notify.lookup import Lookup
from ledgerops.notify.service import Service
from ledgerops.notify.spool import Spool
from ledgerops.runtime.registry import QueryRegistry
from tests.build import spark_json
from tests.fuzzing import options
from tests.fuzzing.mutated import STRANGE, change, with_broken_bytes
from tests.notify.build import alert, resolved, webhook

CLIENTS = 4
KEPT_THREADS = 16 + 2 * CLIENTS  # notify's pool, and one of each server for each client
PATHS = ("/", "/metrics", "/status", "/diagnosis", "/recording", "/healthz", "/alerts", "/nothing", "//", "*", "/%00")
QUERIES = ("", "?query=daily_counts", "?since=1e400", "?since=-1", "?since=nan", "?query=%ff&query=", "?" + "a=b&" * 50)
HEADERS = (
    "Host: localhost", "Host: evil.example", "Host: [::1", "Accept: application/openmetrics-text;q=x",
    "Accept: */*;q=2", "Accept-Encoding: gzip", "Authorization: Basic \x00", "Connection: keep-alive",
    "Content-Length: 5", "Origin: http://evil.example", "X: " + "y" * 300, "Transfer-Encoding: chunked",
    "Expect: 100-continue", ": no name", "no colon", " folded",
)  # fmt: skip
ODD = (*STRANGE, 10**400, float("inf"), float("nan"))
GROWTH_BYTES = 40 * 1024 * 1024  # of this process after the first tenth of the requests: caches fill for a while


@dataclass
class Found:
    """What the requests came to."""

    requests: int = 0
    answers: Counter[str] = field(default_factory=Counter)  # by status; "none" without one
    wrong: list[str] = field(default_factory=list)
    grown_bytes: int = 0
    threads: int = 0  # more than before
    descriptors: int = 0  # more than before
    seconds: float = 0.0


class Silent:
    """A sender that takes everything."""

    name = "silent"

    def send(self, message: object) -> None:
        pass


def fuzz(requests: int, seconds: float, seed: int = 5) -> Found:
    """Sends so many requests, or as many as fit into the time."""
    found, lock, began = Found(), threading.Lock(), time.monotonic()
    this = psutil.Process()
    early: list[int] = []

    def wrong(text: str) -> None:
        with lock:
            found.wrong.append(text[-1500:])

    with servers(wrong) as ports:
        before = threading.active_count(), this.num_fds()

        def client(number: int) -> None:
            draw = random.Random(seed * 1000 + number)
            for _ in range(number, requests, CLIENTS):
                if time.monotonic() - began > seconds or len(found.wrong) > 20:
                    return
                content = request(draw)
                port = ports[1 if content.startswith(b"POST") and draw.random() < 0.9 else draw.randrange(2)]
                status = asked(port, content, draw.random() < 0.05)
                with lock:
                    found.requests += 1
                    found.answers[status] += 1
                    if not early and (found.requests > requests / 10 or time.monotonic() - began > seconds / 10):
                        early.append(this.memory_info().rss)
                if status == "500":
                    wrong(f"500 for {content[:300]!r}")

        clients = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found.threads, found.descriptors = threading.active_count() - before[0], this.num_fds() - before[1]
            if found.threads <= KEPT_THREADS and found.descriptors <= 4:
                break
            time.sleep(0.1)
        now = this.memory_info().rss
        found.grown_bytes = now - (early or [now])[0]
    found.seconds = time.monotonic() - began
    return found


@contextmanager
def servers(wrong: Any) -> Iterator[list[int]]:
    """Ports of an exporter with a query and of a notify; what they raise goes to `wrong`."""
    stats = SelfStats()
    queue = EventQueue(stats)
    worker = Worker(queue, QueryRegistry(Diagnoser), stats)
    exporter = Exporter(Config(port=0), worker, stats)
    for number in range(30):
        queue.put("progress", json.dumps(spark_json(batchId=number)))
    log = logging.getLogger("ledgerops")
    level = log.level
    log.setLevel(logging.CRITICAL)

    def raised(server: Server, request: object, address: object) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            wrong(traceback.format_exc())

    usual, Server.handle_error = Server.handle_error, raised  # type: ignore[method-assign]
    hook, threading.excepthook = threading.excepthook, lambda args: wrong(f"{args.thread}: {args.exc_value!r}")
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Spool(Path(folder) / "queue.db", ["silent"]), Lookup(), [Silent()])
        worker.start()
        exporter.start()
        service.start()
        try:
            yield [exporter.port, service._server.server_port]
            if stats.collector_errors["exporter"]:
                wrong(f"{stats.collector_errors['exporter']} pages could not be made")
            if failed := service.counts.of("failed_total", "silent"):
                wrong(f"{failed:g} messages could not be written")
        finally:
            service.close()
            exporter.close()
            worker.stop()
            log.setLevel(level)
            Server.handle_error, threading.excepthook = usual, hook  # type: ignore[method-assign]


def request(draw: random.Random) -> bytes:
    """A request: a webhook, a valid GET, one with odd headers, or bytes."""
    kind = draw.random()
    if kind < 0.35:
        content = body(draw)
        length = len(content) if draw.random() < 0.9 else draw.choice([0, 3, len(content) + 7, -1, 10**30, "²", ""])
        head = f"POST {draw.choice(['/alerts', '/alerts', '/alerts?x', *PATHS])} HTTP/1.1\r\nHost: localhost\r\n"
        made = f"{head}Content-Length: {length}\r\n\r\n".encode("latin-1") + content
    else:
        method = draw.choice(["GET"] * 8 + ["HEAD", "PUT", "OPTIONS", "get", ""])
        version = draw.choice(["HTTP/1.1"] * 8 + ["HTTP/1.0", "HTTP/0.9", "HTTP/9", "", "x"])
        lines = [f"{method} {draw.choice(PATHS)}{draw.choice(QUERIES)} {version}"]
        lines += draw.choices(HEADERS, k=draw.choice([0, 1, 1, 2, 5, 120]))
        made = "\r\n".join([*lines, "", ""]).encode("utf-8", "replace")
    if draw.random() < 0.2:
        made = with_broken_bytes(draw, made)
    return made if draw.random() < 0.98 else draw.randbytes(draw.choice([1, 50, 5000]))


def body(draw: random.Random) -> bytes:
    """The JSON of a webhook, in which something may be odd."""
    key = f"group {draw.randrange(200)}"
    given = draw.choice([webhook, webhook, resolved])(groupKey=key)
    if draw.random() < 0.3:
        given["alerts"] = [alert(fingerprint=str(draw.random())) for _ in range(draw.randrange(5))]
    for _ in range(draw.choice([0, 1, 1, 3])):
        change(draw, given, ODD)
    text = json.dumps(given)
    if draw.random() < 0.02:
        text = draw.choice(["[" * 50_000, '{"a":' * 5000, "9" * 6000, '"' + "\\ud800" * 100, "NaN", ""])
    return text.encode("utf-8", "replace")


def asked(port: int, content: bytes, hang_up: bool) -> str:
    """The status of the answer. A client may hang up at once; each says where its request ends."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(content)
            if hang_up:
                return "hung up"
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(65_536):
                answer = answer or part
            return answer[9:12].decode("ascii", "replace") if answer.startswith(b"HTTP/") else "none"
    except OSError as error:
        return type(error).__name__


def main() -> int:
    args = options(__doc__, requests=1_000_000, seconds=3600.0)
    found = fuzz(args.requests, args.seconds, args.seed)
    print(f"{found.requests:,} requests in {found.seconds:.0f} s, answers {dict(found.answers.most_common())}")
    print(
        f"memory {found.grown_bytes / 1e6:+.1f} MB after the first tenth, {found.threads} threads and "
        f"{found.descriptors} descriptors more than before; {len(found.wrong)} failures"
    )
    for each in found.wrong:
        print(each, file=sys.stderr)
    return int(bool(found.wrong) or found.grown_bytes > GROWTH_BYTES)


if __name__ == "__main__":
    sys.exit(main())
