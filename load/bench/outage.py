"""A zone's outage before a real Alertmanager and the real notify: how many pages arrive, when, and how grouped.

Alerts are those that Prometheus sends when drivers vanish, or when all their queries lose the source: synthetic, with
the labels of the rules.
"""

import json
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import which
from typing import Any

from ledgerops.errors import UserError
from ledgerops.mixin.site import Site
from ledgerops.servers.background import Background, Quiet
from ledgerops.servers.process import Process, answers, free_port
from load.bench.lines import Line, least
from load.bench.servers import START_SECONDS, Alertmanager

DRIVERS = 250  # that vanish
MANY_QUERIES = 1_200  # that page one by one: more than the queue of notify holds
RECEIVER_SECONDS = 0.1
MAX_SECONDS = 600.0  # for the pages of one scene
QUIET_SECONDS = 5.0  # without a page, after the last one that is owed: one that is sent twice would have come
BY_JOB = {"matchers": ['alertname=~"LedgerDriverLost|LedgerTargetDown"'], "group_by": ["job", "alertname"]}

BETWEEN_SECONDS = 60.0  # from LedgerTargetDown to LedgerDriverLost, as in the rules

Alert = dict[str, Any]
Steps = Sequence[tuple[float, Sequence[Alert]]]  # seconds after the step before, and the alerts that begin then


@dataclass
class Outcome:
    """What one scene came to: seconds from the alerts' arrival at Alertmanager to each page, and peak memory."""

    owed: int
    delays: list[float] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    notify_bytes: int = 0
    alertmanager_bytes: int = 0
    refused: int = 0  # webhooks that notify sent back, which Alertmanager repeats

    @property
    def figure(self) -> str:
        """One cell of the table."""
        delays = sorted(self.delays) or [float("nan")]
        return (
            f"{len(self.delays):,} of {self.owed:,} pages, the first after {delays[0]:.0f} s, median "
            f"{statistics.median(delays):.0f} s, last {delays[-1]:.0f} s; {self.refused:,} webhooks refused and "
            f"repeated; peak memory: notify {self.notify_bytes / 1e6:.0f} MB, Alertmanager "
            f"{self.alertmanager_bytes / 1e6:.0f} MB"
        )


def outage(say: Callable[[str], None]) -> Iterator[Line]:
    """Yields the lines of the part."""
    scenes: Sequence[tuple[str, Steps, int, Sequence[dict[str, Any]]]] = (
        (f"{DRIVERS} drivers vanish, each an application of its own", lost_drivers(DRIVERS), DRIVERS + 1, ()),
        (f"{DRIVERS} drivers vanish, lost drivers grouped by job", lost_drivers(DRIVERS), 2, (BY_JOB,)),
        (f"{MANY_QUERIES:,} queries lose their source", ((0.0, lost_sources(MANY_QUERIES)),), MANY_QUERIES, ()),
    )
    for what, steps, owed, routes in scenes:
        found = scene(steps, owed, routes)
        say(f"{what}: {found.figure}")
        yield least(what, len(found.delays), found.figure, owed, "every page")


def lost_drivers(drivers: int, between: float = BETWEEN_SECONDS) -> Steps:
    """What Prometheus sends for drivers that vanished: first that their targets are down, then their loss."""
    down = [_alert("LedgerTargetDown", "warning", instance=f"driver-{n:03}:9464") for n in range(drivers)]
    lost = [_alert("LedgerDriverLost", app=f"app-{n:03}", instance=f"driver-{n:03}:9464") for n in range(drivers)]
    return (0.0, down), (between, lost)


def lost_sources(queries: int, of_app: int = 1) -> list[Alert]:
    """What it sends for queries whose broker does not answer, of which an application has `of_app`."""
    return [
        _alert("LedgerSourceUnreachable", app=f"app-{n // of_app:03}", query=f"query-{n % of_app:02}")
        for n in range(queries)
    ]


def _alert(name: str, severity: str = "critical", **labels: str) -> Alert:
    return {
        "labels": {"alertname": name, "severity": severity, "job": "ledgerops", **labels},
        "annotations": {
            "summary": f"{name} of a synthetic outage.",
            "description": f"About {labels}.",
            "runbook_url": f"https://runbooks.example.com/{name}.md",
        },
    }


def scene(
    steps: Steps,
    owed: int,
    routes: Sequence[dict[str, Any]] = (),
    waits: Mapping[str, str] | None = None,
    receiver_seconds: float = RECEIVER_SECONDS,
    quiet_seconds: float = QUIET_SECONDS,
    max_seconds: float = MAX_SECONDS,
) -> Outcome:
    """Sends the alerts of each step to an Alertmanager of its own, and waits for `owed` pages at most `max_seconds`.

    `routes` come before those of the generated configuration, and `waits` (group_wait, group_interval) replace its own.
    Raises UserError when a program is missing or does not start.
    """
    program = which("prometheus-alertmanager") or which("alertmanager")
    if program is None:
        raise UserError("alertmanager is absent; install it to simulate an outage")
    found = Outcome(owed)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pages = Receiver(receiver_seconds)
        stack.callback(pages.server.close)
        notify, notify_url = _start_notify(folder, f"{pages.server.url}/pages")
        stack.callback(notify.stop)
        sender = Alertmanager(program, folder, f"{notify_url}/alerts", Site(), waits or {}, routes)
        stack.callback(sender.close)
        notify.wait_until(lambda: answers(f"{notify_url}/healthz"), START_SECONDS)
        began = time.monotonic()
        for wait, alerts in steps:
            time.sleep(wait)
            for first in range(0, len(alerts), 250):
                _post(f"http://{sender.address}/api/v2/alerts", alerts[first : first + 250])
        while time.monotonic() - began < max_seconds:
            last = pages.got[-1][0] if pages.got else began
            if len(pages.got) >= owed and time.monotonic() - last >= quiet_seconds:
                break
            time.sleep(0.1)
        found.delays = [at - began for at, _ in pages.got]
        found.texts = [text for _, text in pages.got]
        found.refused = _refused(f"{notify_url}/metrics")
        found.notify_bytes, found.alertmanager_bytes = peak_memory(notify.pid), peak_memory(sender.process.pid)
    return found


def _start_notify(folder: Path, service: str) -> tuple[Process, str]:
    """The real notify, which sends pages to the URL `service`, and its own URL."""
    port = free_port()
    (folder / "senders").write_text(f"{service}\n")
    command = [sys.executable, "-m", "ledgerops", "notify", "--port", str(port), "--queue", str(folder / "queue.db")]
    command += ["--senders", str(folder / "senders"), "--exporter", f"http://127.0.0.1:{free_port()}"]
    return Process("notify", command, folder / "notify.log"), f"http://127.0.0.1:{port}"


class Receiver:
    """A service that takes pages, each after some seconds."""

    def __init__(self, seconds: float) -> None:
        self.got: list[tuple[float, str]] = []  # when, by the monotonic clock, and the text
        receiver = self

        class Handler(Quiet):
            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                time.sleep(seconds)
                receiver.got.append((time.monotonic(), text))
                self.reply()

        self.server = Background(Handler)


def peak_memory(pid: int) -> int:
    """Bytes of the largest resident set of a process so far."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _post(url: str, alerts: Sequence[Alert]) -> None:
    now = datetime.now(UTC)  # Alertmanager does not wait for the rest of a group whose first alert is old
    times = {"startsAt": now.isoformat(), "endsAt": (now + timedelta(hours=1)).isoformat()}
    content = json.dumps([{**each, **times} for each in alerts]).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def _refused(url: str) -> int:
    with urllib.request.urlopen(url, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    values = [line.rsplit(" ", 1)[1] for line in lines if line.startswith("ledgerops_notify_refused") and "{" in line]
    return round(sum(map(float, values)))
