"""An operator's evening with real Spark, Kafka, Prometheus, Alertmanager and `ledgerops notify`.

Two applications: `shop` reads from Kafka with an executor of its own, `depot` counts. A minute of the alerts is ten
seconds, but not to the diagnosis, whose clock is the real one: tests/diagnosis/test_before_the_page.py shows that it
has named the cause before a page is sent.

`python -m tests.e2e.evening FILE` lives one and writes the page of the documentation.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from ledgerops.common.kafka import reach
from ledgerops.drills.harness.processes import command_line, descendants
from ledgerops.mixin.site import Site
from ledgerops.servers.java import SHORT_LIVED
from ledgerops.servers.kafka import Kafka
from ledgerops.servers.process import Process, answers, free_port, send
from tests import topics
from tests.monitoring import Alertmanager, Prometheus
from tests.notify.receiver import Receiver
from tests.paths import ROOT
from tests.programs import busy_cores, finished, for_spark, needed, until
from tests.serving import fetched

SCALE = 6  # a window of a minute is ten seconds
SITE = Site(scrape_seconds=2.0, evaluation_seconds=1.0, time_scale=1 / SCALE)
WAITS = {"group_wait": "15s"}  # as it is rendered: what begins together is one page also on a busy machine
SLOW = 240.0  # seconds for what takes twenty on an idle machine
FIRST, SECOND = ("orders", "payments"), ("orders", "payments", "refunds")  # the queries of shop, and after its redeploy
STOCK = ("stock",)  # those of depot


@dataclass
class Incident:
    """What was done, to which application, and the messages about it. `quiet`: nobody is to hear of it."""

    name: str
    app: str
    done: str
    quiet: bool = False
    counted_from: str = "the fault"
    began: float = 0.0
    repaired: float = 0.0
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def to_page(self) -> float | None:
        """Seconds from the fault to the first message."""
        return self.messages[0]["at"] - self.began if self.messages else None

    @property
    def to_end(self) -> float | None:
        """Seconds from the repair to RESOLVED."""
        return self.messages[-1]["at"] - self.repaired if self.messages else None


class Stamped(list[dict[str, Any]]):
    """Messages, each with the moment at which it arrived."""

    def append(self, message: dict[str, Any]) -> None:
        super().append({**message, "at": time.time()})


class Evening:
    """The servers, and what an operator does to them. `incidents` are those of the evening, in their order."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.incidents = folder, list[Incident]()
        self.ports = {"shop": free_port(), "depot": free_port()}
        self.drivers: dict[str, Process] = {}
        self.receiver = Receiver()
        self.receiver.got = Stamped()
        self._open = contextlib.ExitStack()
        self._open.callback(self.receiver.close)

    def __enter__(self) -> Evening:
        try:
            self._start()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _start(self) -> None:
        from confluent_kafka.admin import NewTopic

        self.broker = self._open.enter_context(Kafka(self.folder / "kafka"))
        self._open.callback(self._signal_broker, signal.SIGCONT)
        topics.make(reach(self.broker.client), NewTopic("events", 1, 1))
        self._open.enter_context(topics.writing(self.broker.client, "events", b"{}"))
        self._open.callback(lambda: [driver.kill() for driver in self.drivers.values()])
        self.deploy("shop", *FIRST)
        self.deploy("depot", *STOCK)
        self.wait_for_queries("shop", *FIRST)
        self.wait_for_queries("depot", *STOCK)
        notify, webhook = self.folder / "notify.log", f"http://127.0.0.1:{free_port()}"
        self.alertmanager = Alertmanager(self.folder / "am", f"{webhook}/alerts", SITE, waits=WAITS)
        self._open.callback(self.alertmanager.close)
        drivers = [f"127.0.0.1:{port}" for port in self.ports.values()]
        self.prometheus = Prometheus(self.folder / "prometheus", drivers, SITE, self.alertmanager.address)
        self._open.callback(self.prometheus.close)
        command = ["notify", "--send", self.receiver.url, "--prometheus", self.prometheus.url]
        command += ["--port", webhook.rpartition(":")[2], "--queue", str(self.folder / "notify.db")]
        service = Process("notify", [sys.executable, "-m", "ledgerops", *command], notify, cwd=ROOT)
        self._open.callback(service.stop)
        service.wait_until(lambda: answers(f"{webhook}/healthz"), SLOW)
        queries = len(FIRST) + len(STOCK)  # a driver that ends before its first scrape would be missed, and rightly
        until(lambda: len(self.prometheus.ask("ledgerops_query_active == 1")) == queries, SLOW, "the first scrapes")

    def deploy(self, app: str, *queries: str) -> None:
        """Starts a driver at the application's address."""
        folder = self.folder / app
        folder.mkdir(exist_ok=True)
        broker, master = (self.broker.servers, "local-cluster[1,1,512]") if app == "shop" else ("-", "local[1]")
        environ = for_spark(SPARK_SUBMIT_OPTS=SHORT_LIVED)
        command = [sys.executable, "-m", "tests.e2e.evening_app", app, str(self.ports[app]), folder, broker, master]
        self.drivers[app] = Process(app, [*command, *queries], folder / "driver.log", cwd=ROOT, env=environ)

    def wait_for_queries(self, app: str, *queries: str) -> None:
        """Until each has ended some batches, so that their usual duration is known."""

        def at_work() -> bool:
            known = {each["query"]: each for each in self.diagnosis(app)}
            return all(known.get(query, {}).get("figures", {}).get("batch_seconds") for query in queries)

        until(at_work, SLOW, f"batches of {', '.join(queries)}")
        metric = f'min(ledgerops_batches_total{{app="{app}"}}) > 5'
        if hasattr(self, "prometheus"):
            until(lambda: self.prometheus.ask(metric), SLOW, "six batches of each")

    def diagnosis(self, app: str) -> list[dict[str, Any]]:
        """The queries of the diagnosis document of an application; none while its driver does not answer."""
        try:
            found: list[dict[str, Any]] = json.loads(fetched(f"http://127.0.0.1:{self.ports[app]}/diagnosis"))[
                "queries"
            ]
            return found
        except OSError:
            return []

    def fault(self, app: str, query: str, what: str | None) -> None:
        """Sets what the sink of a query does wrong; None ends it."""
        file = self.folder / app / query
        if what is None:
            file.unlink()
        else:
            file.write_text(what)

    def messages(self, app: str, since: float) -> list[dict[str, Any]]:
        """Those about an application from then on."""
        return [
            sent
            for sent in list(self.receiver.got)
            if sent["at"] >= since and sent["title"].split(":")[0].removesuffix(", better").endswith(f" {app}")
        ]

    def firing(self, app: str) -> set[str]:
        """The alerts of an application that are pending or fire, but for those that page nobody."""
        return {each["metric"]["alertname"] for each in self.prometheus.ask(f'ALERTS{{app="{app}", severity!="info"}}')}

    def _calm(self, app: str) -> None:
        """Until no alert of an application is pending or fires, and the last message was an end."""

        def calm() -> bool:
            told = self.messages(app, 0.0)
            return not self.firing(app) and (not told or bool(told[-1]["resolved"]))

        until(calm, SLOW, f"no alert of {app}, and the end of the last message")

    def incident(self, name: str, app: str, done: str, fault: Callable[[], Any], repair: Callable[[], Any]) -> Incident:
        """A fault, its first message, the repair, and the end of all its alerts. `fault` may return when it counts
        from."""
        found = Incident(name, app, done, began=time.time())
        self.incidents.append(found)
        found.began = fault() or found.began
        until(lambda: self.messages(app, found.began), SLOW, f"a page about {name}")
        found.repaired = time.time()
        repair()
        self._calm(app)
        return found

    def quiet(self, name: str, app: str, done: str, action: Callable[[], Any]) -> Incident:
        """What must page nobody: the action returns once it is over, and then no alert of the application is left."""
        found = Incident(name, app, done, quiet=True, began=time.time())
        self.incidents.append(found)
        action()
        self._calm(app)
        found.repaired = time.time()
        return found

    def _attribute(self) -> None:
        """Gives each incident the messages about its application until the next one there."""
        self.incidents.sort(key=lambda each: each.began)
        for number, each in enumerate(self.incidents):
            later = (other.began for other in self.incidents[number + 1 :] if other.app == each.app)
            end = next(later, float("inf"))
            each.messages = [sent for sent in self.messages(each.app, each.began) if sent["at"] < end]

    def unexplained(self) -> list[dict[str, Any]]:
        """Messages that belong to no incident."""
        known = [sent["at"] for each in self.incidents for sent in each.messages]
        return [sent for sent in self.receiver.got if sent["at"] not in known]

    def live(self) -> None:
        """The whole evening; of what concerns different applications two things happen at a time."""
        with ThreadPoolExecutor(2) as pool:
            for shop, depot in (
                (self._redeploy_and_slow_sink, self._silenced),
                (self._hung_sink_on_a_busy_host, lambda: None),
                (self._broker_away, self._driver_killed),
                (self._executor_lost, self._planned_stop),
            ):
                for done in [pool.submit(shop), pool.submit(depot)]:
                    done.result()
        self._attribute()

    def _redeploy_and_slow_sink(self) -> None:
        def redeploy() -> None:
            self.drivers["shop"].stop(seconds=SLOW)
            self.deploy("shop", *SECOND)
            self.wait_for_queries("shop", *SECOND)

        self.quiet("Redeploy", "shop", f"stopped (SIGTERM), started with {', '.join(SECOND)}", redeploy)
        self.incident(
            "Slow sink", "shop", "each write of orders takes 12 s, the trigger interval is 5 s",
            lambda: self.fault("shop", "orders", "sleep 12"), lambda: self.fault("shop", "orders", None),
        )  # fmt: skip

    def _silenced(self) -> None:
        """A sink hangs while the application is silenced; the silence ends before the fault does."""
        amtool = [needed("amtool"), f"--alertmanager.url=http://{self.alertmanager.address}", "silence"]

        def silence() -> float:
            options = ["--author=evening", "--comment=a test", "--duration=1h", "app=depot"]
            made = finished(*amtool, "add", *options)
            self.fault("depot", "stock", "block")
            until(lambda: self._suppressed("depot"), SLOW, "an alert that is silenced")
            assert self.messages("depot", 0.0) == []
            until(lambda: self._names("depot", "query-stuck"), SLOW, "a diagnosis of what hangs")
            expired = time.time()
            finished(*amtool, "expire", made.stdout.strip()).check_returncode()
            return expired

        self.incident(
            "Silence, and its end", "depot", "the sink of stock hangs while depot is silenced; then the silence ends",
            silence, lambda: self.fault("depot", "stock", None),
        ).counted_from = "the end of the silence"  # fmt: skip

    def _names(self, app: str, rule: str) -> bool:
        return any(cause["rule"] == rule for query in self.diagnosis(app) for cause in query["root_causes"])

    def _suppressed(self, app: str) -> bool:
        url = f"http://{self.alertmanager.address}/api/v2/alerts?active=false&inhibited=false&filter=app%3D{app}"
        return any(each["status"]["state"] == "suppressed" for each in json.loads(fetched(url)))

    def _hung_sink_on_a_busy_host(self) -> None:
        with contextlib.ExitStack() as busy:

            def fault() -> None:
                busy.enter_context(busy_cores())
                self.fault("shop", "payments", "block")

            def repair() -> None:
                busy.close()
                self.fault("shop", "payments", None)

            self.incident(
                "Hung sink on a busy host", "shop", "the sink of payments hangs, and other processes take the cores",
                fault, repair,
            )  # fmt: skip

    def _signal_broker(self, what: signal.Signals) -> None:
        """Stopped, it keeps its connections and answers nothing."""
        if self.broker.pid is not None:
            server = psutil.Process(self.broker.pid)
            send([server, *server.children(recursive=True)], what)

    def _broker_away(self) -> None:
        self.incident(
            "Broker away", "shop", "the broker of three queries answers nothing, then answers again",
            lambda: self._signal_broker(signal.SIGSTOP), lambda: self._signal_broker(signal.SIGCONT),
        )  # fmt: skip

    def _driver_killed(self) -> None:
        def again() -> None:
            self.deploy("depot", *STOCK)
            self.wait_for_queries("depot", *STOCK)

        self.incident(
            "Driver killed", "depot", "SIGKILL to the driver, which is started again after the page",
            self.drivers["depot"].kill, again,
        )  # fmt: skip

    def _executor_lost(self) -> None:
        def lose() -> None:
            below = descendants(self.drivers["shop"].pid)
            [executor] = [each for each in below if "CoarseGrainedExecutorBackend" in command_line(each)]
            executor.kill()
            found = until(lambda: self._findings("shop", "executor-lost"), SLOW, "the lost executor")
            assert found

        self.quiet("Executor lost", "shop", "SIGKILL to the only executor; Spark starts another one", lose)

    def _findings(self, app: str, rule: str) -> list[dict[str, Any]]:
        return [f for each in self.diagnosis(app) for f in each["findings"] if f["rule"] == rule]

    def _planned_stop(self) -> None:
        def stop() -> None:
            self.drivers["depot"].stop(seconds=SLOW)
            hold = f'max_over_time(up{{instance="127.0.0.1:{self.ports["depot"]}"}}[{SITE.window(120.0)}]) == 0'
            until(lambda: self.prometheus.ask(hold), SLOW, "the time after which a lost driver would page")

        self.quiet("Planned stop", "depot", "stopped (SIGTERM) and not started again", stop)


def page(evening: Evening) -> str:
    """The page of the documentation."""
    rows = "\n".join(
        f"| {each.name} | {len(each.messages)} | {_seconds(each.to_page)} | {_seconds(each.to_end)} |"
        for each in evening.incidents
    )
    missing = [each.name for each in evening.incidents if not each.quiet and not each.messages]
    false = len(evening.unexplained()) + sum(len(each.messages) for each in evening.incidents if each.quiet)
    told = "\n\n".join(map(_told, evening.incidents))
    return f"""# What an evening looks like

<!-- generated by python -m tests.e2e.evening docs/guides/evening.md -->
Two applications, a broker, Prometheus, Alertmanager and `ledgerops notify`, all real, with the generated rules and
routes. Faults are injected, at most one at a time into each application, and every message that somebody on call gets
is on this page. The windows of the alerts are {SCALE} times shorter than by default, except for what the diagnosis
needs: with the defaults the seconds below are up to {SCALE} times longer. The seconds of the silence count from its
end. `tests/e2e/test_evening.py` lives such an evening and checks the messages.

| incident | messages | seconds from fault to page | seconds from repair to RESOLVED |
|---|---|---|---|
{rows}

False pages: {false}. Missing pages: {len(missing)}.

{told}
"""


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _told(incident: Incident) -> str:
    lines = [f"## {incident.name}", "", f"`{incident.app}`: {incident.done}."]
    if not incident.messages:
        lines += ["", "No message."]
    for sent in incident.messages:
        when = f"{sent['at'] - incident.began:.0f} s after {incident.counted_from}"
        if sent["at"] >= incident.repaired:
            when = f"{sent['at'] - incident.repaired:.0f} s after the repair"
        lines += ["", f"{when[0].upper()}{when[1:]}:", "", "```text", sent["title"], sent["body"], "```"]
    return "\n".join(lines)


def main() -> None:
    os.environ.setdefault("KAFKA_OPTS", SHORT_LIVED)
    with tempfile.TemporaryDirectory(prefix="ledgerops-evening-") as folder, Evening(Path(folder)) as evening:
        try:
            evening.live()
        finally:
            for sent in evening.receiver.got:
                print(f"{time.strftime('%H:%M:%S', time.gmtime(sent['at']))} {sent['title']}\n{sent['body']}\n")
        Path(sys.argv[1]).write_text(page(evening), "utf-8")


if __name__ == "__main__":
    main()
