"""A storm of alerts for notify: one dead and one hung sender, one hung driver, and kill -9 again and again.

    python -m tests.e2e.storm --alerts 10000 --kills 20

Alertmanager's part is played here: each group is posted until notify takes it. Every page that the healthy sender owes
must arrive, at most once more than once, and in time. Prints figures; exit code 0 when all that held, 1 otherwise.
"""

import argparse
import http.client
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledgerops.servers.process import answers, free_port
from tests.notify.build import DIAGNOSIS, alert, webhook
from tests.programs import until
from tests.serving import Background, Quiet

ALERTS_OF_A_GROUP = 5
POSTERS = 16  # groups that are posted at the same time
TRIES = 200  # of a group, as long as notify is away
PAUSE_SECONDS = 0.3  # between two of them
FULL_TRIES = 2  # of a group that the healthy sender has taken, and another has no room for


@dataclass
class Found:
    """What came of a storm; seconds are from the first post of a group to the arrival of its page."""

    groups: int
    kills: int
    seconds: float = 0.0
    arrived: Counter[str] = field(default_factory=Counter)
    delays: list[float] = field(default_factory=list)
    longest_down: float = 0.0  # seconds from a kill until notify answered again
    with_diagnosis: int = 0
    missing: list[str] = field(default_factory=list)

    @property
    def repeated(self) -> int:
        """Pages that came twice."""
        return sum(count == 2 for count in self.arrived.values())

    @property
    def more(self) -> int:
        """Pages that came three times or more."""
        return sum(count > 2 for count in self.arrived.values())


class Healthy:
    """A webhook that takes every message, and a driver that knows every query."""

    def __init__(self) -> None:
        self.got: list[tuple[float, str]] = []
        healthy = self

        class Handler(Quiet):
            def do_POST(self) -> None:
                healthy.got.append((time.monotonic(), self.rfile.read(int(self.headers["Content-Length"])).decode()))
                self.reply()

            def do_GET(self) -> None:
                query = self.path.rpartition("query=")[2]
                self.reply(body=json.dumps({"queries": [{**DIAGNOSIS, "query": query}]}).encode())

        self._server = Background(Handler)
        self.url = self._server.url

    def close(self) -> None:
        self._server.close()


class Notify:
    """`ledgerops notify` as a process that can be killed and started again on its queue."""

    def __init__(self, folder: Path, senders: list[str], drivers: list[str]) -> None:
        self.port = free_port()
        (folder / "senders").write_text("\n".join(senders))
        self.command = [sys.executable, "-m", "ledgerops", "notify", "--port", str(self.port)]
        self.command += ["--senders", str(folder / "senders"), "--queue", str(folder / "notify.db")]
        self.command += [part for driver in drivers for part in ("--exporter", driver)]
        self.log = (folder / "log").open("wb")
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        until(lambda: answers(f"http://127.0.0.1:{self.port}/healthz"), 120, "notify")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


def storm(alerts: int, kills: int) -> Found:
    """Posts the alerts while notify is killed so many times, and waits for the pages."""
    groups = [f"query_{number}" for number in range(alerts // ALERTS_OF_A_GROUP)]
    found = Found(len(groups), kills)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        healthy = Healthy()
        stack.callback(healthy.close)
        hung = [stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=2048)) for _ in range(2)]
        hung_sender, hung_driver = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in hung)
        senders = [f"http://127.0.0.1:{free_port()}/dead", f"{hung_sender}/hung", f"{healthy.url}/pages"]
        notify = Notify(folder, senders, [hung_driver, healthy.url])
        stack.callback(notify.close)
        began: dict[str, float] = {}
        start = time.monotonic()
        with ThreadPoolExecutor(POSTERS) as pool:
            posting = [pool.submit(post, notify.port, query, began) for query in groups]
            for number in range(kills):
                share = (number + 1) / (kills + 1)
                until(lambda share=share: len(healthy.got) >= share * len(groups) or _done(posting), 600, "pages")
                at = time.monotonic()
                notify.kill()
                notify.start()
                found.longest_down = max(found.longest_down, time.monotonic() - at)
            for each in posting:
                each.result()
        names = set(groups)
        quiet_since = [time.monotonic(), 0.0]

        def complete() -> bool:
            """Whether every page came, or none for a minute."""
            if len(healthy.got) != quiet_since[1]:
                quiet_since[:] = time.monotonic(), len(healthy.got)
            return names <= {named(text) for _, text in healthy.got} or time.monotonic() - quiet_since[0] > 60

        until(complete, 600, "all pages")
        found.seconds = time.monotonic() - start
        first: dict[str, float] = {}
        for at, text in list(healthy.got):
            query = named(text)
            found.arrived[query] += 1
            found.with_diagnosis += "cause: key-skew" in text
            first.setdefault(query, at)
        found.delays = sorted(first[query] - began[query] for query in first)
        found.missing = sorted(names - first.keys())
    return found


def _done(posting: list[Any]) -> bool:
    return all(each.done() for each in posting)


def named(text: str) -> str:
    """The query of a message."""
    return re.search(r"query_\d+", text)[0]  # type: ignore[index]


def post(port: int, query: str, began: dict[str, float]) -> None:
    """Posts a group until notify has taken it, as Alertmanager does."""
    alerts = [alert(f"Ledger{number}", query=query) for number in range(ALERTS_OF_A_GROUP)]
    content = json.dumps(webhook(*alerts, groupKey=query)).encode()
    full = 0
    began[query] = time.monotonic()
    for _ in range(TRIES):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("POST", "/alerts", content)
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status == 200:
                return
            full += "the queue is full" in text
            if full >= FULL_TRIES and "webhook 127.0.0.1 3" not in text:
                return  # the healthy sender has taken it; those that deliver nothing have no room for more
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(PAUSE_SECONDS)
    raise AssertionError(f"notify never took {query}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alerts", type=int, default=10_000, help="(default %(default)s)")
    parser.add_argument("--kills", type=int, default=20, help="(default %(default)s)")
    args = parser.parse_args()
    found = storm(args.alerts, args.kills)
    delays = found.delays or [float("nan")]
    print(
        f"{args.alerts:,} alerts in {found.groups:,} groups, {found.kills} kills, {found.seconds:.0f} s, "
        f"load {os.getloadavg()[0]:.0f}\n"
        f"pages of the healthy sender: {len(found.arrived):,} of {found.groups:,} arrived, {found.repeated} twice, "
        f"{found.more} more often, {found.with_diagnosis:,} messages with a diagnosis\n"
        f"delay after the first post: median {statistics.median(delays):.1f} s, "
        f"99th percentile {delays[int(0.99 * (len(delays) - 1))]:.1f} s, longest {delays[-1]:.1f} s\n"
        f"longest time from a kill until notify answered: {found.longest_down:.1f} s"
    )
    return int(bool(found.missing) or found.more > 0)


if __name__ == "__main__":
    sys.exit(main())
