"""Runs one drill: its servers, its rows, its application under `ledgerops exec`, and what happens to it."""

import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import psutil

from ledgerops.common.shutdown import Stop
from ledgerops.drills.harness.actions import ACTIONS
from ledgerops.drills.harness.application import start_application
from ledgerops.drills.harness.batches import starts
from ledgerops.drills.harness.broker import Broker
from ledgerops.drills.harness.bundle import Bundle, empty_folder
from ledgerops.drills.harness.case import WORDS, Case, steady
from ledgerops.drills.harness.delta_table import DeltaTable
from ledgerops.drills.harness.feeder import Feeder, Send, to_folder, to_topic
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.processes import descendants
from ledgerops.drills.harness.watching import polling, scraping
from ledgerops.errors import UserError
from ledgerops.servers.process import send

MAX_START_SECONDS = 600.0  # of Spark and the queries, on a machine that is busy with other things
MAX_FIRST_BATCH_SECONDS = 20.0  # a fault from birth may be that it never ends
MAX_CLOSE_SECONDS = 60.0
EARLY_ROWS_SECONDS = 4.0  # for which rows arrive before a query starts that reads what there is
MIN_BATCHES = 6  # before and after the onset
MAX_EXTRA_SECONDS = 40.0  # to wait for them
TOPICS = ("input", "second")
# what the faults of the outside set, and what is released at the end so that the application can stop
FAULTS = ("block", "sink", "row", "burn", "region", "gateway", "stall")


def run(case: Case, folder: Path, seed: int = 1, lanes: int = 1, stop: Stop | None = None) -> Bundle:
    """Runs a drill into a new folder. `lanes`: how many may run at the same time; `seed`: of the names of a scripted
    one. Raises UserError when it could not be run to its end or was stopped."""
    empty_folder(folder)
    folder = folder.absolute()
    with ExitStack() as opened:
        injector = Injector(folder, case.name, random_names(case, seed), opened, stop or Stop())
        CaseRun(case, injector, seed, lanes).run()
    bundle = Bundle(folder)
    if case.effect is not None:
        bundle.note(effect=case.effect(bundle))
    return bundle


class CaseRun:
    """One case while it runs."""

    def __init__(self, case: Case, injector: Injector, seed: int, lanes: int) -> None:
        self.case, self.folder, self.tools, self.opened = case, injector.folder, injector, injector.opened
        self.seed, self.lanes = seed, lanes

    def run(self) -> None:
        """Runs the case to its end. Raises UserError if the queries cannot start or it is stopped."""
        case, tools = self.case, self.tools
        self._store()  # first of all: it marks the folder as ours
        tools.outside.set(**case.control)
        feeders = self._feeders()
        if case.trigger == -1.0 or case.options.get("start") == "earliest":
            tools.wait(EARLY_ROWS_SECONDS)
        if case.prepare is not None:
            case.prepare(tools)
        with application(case, tools) as process:
            with ExitStack() as watching:
                if not case.id:  # of a scripted one, the recording is enough
                    watching.enter_context(scraping(self.folder, tools.ui_port))
                times = {"start_seconds": self._wait_for_queries(), "origin": tools.origin}
                (self.folder / "times.json").write_text(json.dumps(times), "utf-8")
                bundle = Bundle(self.folder)
                if not case.id:
                    watching.enter_context(polling(self.folder, process.pid))
                self._play(bundle)
            self._finish(process, feeders)

    def _store(self) -> None:
        """Writes what the drill is to its folder: of a scripted one its name, as the rest is in the code."""
        if self.case.id:
            stored = {"drill": self.case.name, "seed": self.seed, "names": self.tools.names, "lanes": self.lanes}
            (self.folder / "drill.json").write_text(json.dumps(stored, indent=1) + "\n", "utf-8")
        else:
            self.case.save(self.folder)

    def _wait_for_queries(self) -> float:
        """Waits until the queries run, and a plain one has had time for a first batch. Gives the seconds to their
        start."""
        tools, checkpoints, ready = self.tools, self.folder / "checkpoints", self.folder / "ready.json"
        began = time.time()
        if self.case.start:
            tools.until(ready.exists, MAX_START_SECONDS, "the start of its queries")
            told = json.loads(ready.read_text("utf-8"))
            tools.origin, tools.url = told["origin"], told["url"]
            return time.time() - began
        tools.until(lambda: any(checkpoints.glob("*/metadata")), MAX_START_SECONDS, "the start of its query")
        took = time.time() - began
        limit = time.monotonic() + MAX_FIRST_BATCH_SECONDS
        while not any(checkpoints.glob("*/commits/0")) and time.monotonic() < limit:
            tools.wait(0.2)
        tools.origin = time.time()
        return took

    def _play(self, bundle: Bundle) -> None:
        """Does everything that happens to the case, each at its time, until its end, and notes the times."""
        case, tools = self.case, self.tools
        begin, broken = self.opened.enter_context, self.opened.enter_context(ExitStack())
        events: list[tuple[float, Callable[[], object]]] = [
            *((at, partial(tools.outside.set, **values)) for at, values in case.changes),
            *((at, partial(begin, ACTIONS[what](tools, amount))) for at, what, amount in case.actions),
        ]
        if case.id:
            events.append((case.onset_seconds, partial(broken.enter_context, self._fault(bundle))))
            events.append((case.repair_seconds, broken.close))
        late = 0.0
        if case.onset == "later":
            late = self._until_batches(tools.origin, tools.origin + case.onset_seconds)
        for at, act in sorted(events, key=lambda event: event[0]):
            tools.at(tools.origin + late + at)
            act()
        end = tools.origin + late + case.seconds
        if case.id:
            tools.at(end)
        else:
            onset = tools.origin + late + case.onset_seconds
            bundle.note(injected=onset)
            self._until_batches(onset, end)
        bundle.note(ended=time.time())

    @contextmanager
    def _fault(self, bundle: Bundle) -> Iterator[None]:
        """The fault of a scripted case, from its onset to its repair."""
        bundle.note(injected=time.time())
        self.tools.outside.set(**self.case.fault)
        with nullcontext() if self.case.breaks is None else self.case.breaks(self.tools):
            yield
            bundle.note(repaired=time.time())
            self.tools.outside.set(**dict.fromkeys(self.case.fault))

    def _finish(self, process: subprocess.Popen[bytes], feeders: list[Feeder]) -> None:
        """Lets the application stop by itself, for what it writes to be whole."""
        self.tools.outside.set(**dict.fromkeys(FAULTS))
        (self.folder / "stop").touch()
        for feeder in feeders:
            feeder.close()
        try:
            process.wait(MAX_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            if self.case.start:
                log = self.folder / "app.log"
                raise UserError(f"drill {self.case.name}: the application did not stop gracefully; see {log}") from None
            # it is killed; its event log then ends with the last event that was flushed

    def _until_batches(self, since: float, until: float) -> float:
        """Waits until then, and on a slow machine for some batches after `since`. Gives the seconds beyond `until`."""
        tools = self.tools
        tools.at(until)
        limit = until + min(MAX_EXTRA_SECONDS, 0.8 * (until - since))
        folders = list((self.folder / "checkpoints").glob("*"))
        while time.time() < limit and tools.running:
            counts = [sum(at >= since for at in starts(checkpoint)) for checkpoint in folders]
            if counts and min(counts) >= MIN_BATCHES:
                break
            tools.wait(0.5)
        return max(0.0, time.time() - until)

    def _feeders(self) -> list[Feeder]:
        """Starts what sends rows to the case's source, and before that the source itself."""
        case, outside = self.case, self.tools.outside
        senders: list[Send] = []
        if case.topics or case.source == "kafka":
            senders = self._open_broker()
        elif case.source == "files":
            senders = [to_folder(self.folder / topic) for topic in TOPICS]
        elif case.source == "delta":
            self.tools.table = DeltaTable(self.folder / TOPICS[0])
            senders = [self.tools.table.append]
            if case.options.get("merge"):
                senders.append(DeltaTable(self.folder / "output").append)
        elif case.source == "ledger":
            (self.folder / "plan.yaml").write_text(steady(11, outside("load")["rate"]), "utf-8")
        keys = ("load", "load2") if case.two_inputs else ("load", "rival")
        feeders = [Feeder(outside, key, sender) for key, sender in zip(keys, senders, strict=False)]
        for feeder in feeders:
            self.opened.callback(feeder.close)
        return feeders

    def _open_broker(self) -> list[Send]:
        """Starts a broker with its topics and loads; gives what sends to each of TOPICS where there are these."""
        case, proxied = self.case, self.case.proxied or bool(self.case.topics)
        self.tools.broker = broker = self.opened.enter_context(Broker(self.folder / "kafka", proxied, self.seed))
        self.tools.servers = broker.through.servers
        broker.create(case.topics or dict.fromkeys((*TOPICS, "mirrored"), case.partitions), case.topic_conf)
        for topic, plan in case.loads:
            broker.produce(topic, plan)
        return [] if case.topics else [to_topic(broker.kafka.servers, topic, case.partitions) for topic in TOPICS]


@contextmanager
def application(case: Case, injector: Injector) -> Iterator[subprocess.Popen[bytes]]:
    """The process of the application. It and its children, suspended ones included, are killed at the end."""
    process = start_application(case, injector)
    injector.process = psutil.Process(process.pid)
    try:
        yield process
    finally:
        if process.poll() is None:
            below = descendants(process.pid)
            process.kill()  # first, so that it starts none of them again
            send(below, signal.SIGKILL)
        process.wait()
        shutil.rmtree(injector.folder / "local", ignore_errors=True)


def random_names(case: Case, seed: int) -> dict[str, str]:
    """A random name for each query, so that no verdict can depend on names."""
    chance = random.Random(f"{case.name} {seed}")
    found: dict[str, str] = {}
    for role in case.roles:
        while (name := "_".join(chance.choice(words) for words in WORDS)) in found.values():
            pass
        found[role] = name
    return found
