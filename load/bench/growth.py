"""How the observer's cost grows: with queries, partitions, remembered batches and series.

The real worker is fed, event by event, on this thread. The time is the thread's own on a core, since what a busy
machine takes away is not the observer's. In a driver several events share a turn, so this is the expensive case.
"""

from __future__ import annotations

import gc
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson

from ledgerops.agent.queue import Event, EventQueue
from ledgerops.agent.worker import Worker
from ledgerops.config import Config
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.recording import Recorder
from ledgerops.model.records import Observation, ObservationKind
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.snapshot import Snapshot
from load.bench.core import T0, WIDE_PARTITIONS, around, median_ms, progress, scraped
from load.bench.lines import Line, limit

QUERIES, PARTITIONS, HISTORY_BATCHES = (1, 10, 50, 100), (5, 50, 500), (10, 50, 200)
BATCHES = 200  # the most that a history keeps
MEASURED_EVENTS = 900
SCRAPES = 7
SCRAPE_SECONDS = 15.0  # the generated Prometheus configuration's interval
MAX_P99_MS = 5.0  # of an event
MAX_CORE_SHARE = 0.25  # of a core, for 50 queries at a batch a second


class _FedQueue(EventQueue):
    """A queue that returns the events handed to it, with their own times."""

    def __init__(self, stats: SelfStats) -> None:
        super().__init__(stats)
        self.waiting: list[Event] = []

    def take(self, timeout: float) -> list[Event]:
        events, self.waiting = self.waiting, []
        return events


class Spent(NamedTuple):
    """Milliseconds of a core for one event."""

    kind: ObservationKind
    milliseconds: float


@dataclass
class FedWorker:
    """A worker that is fed events of so many queries; `spent` has each measured event."""

    queries: int
    partitions: int
    folder: Path
    spent: list[Spent] = field(default_factory=list)
    stats: SelfStats = field(default_factory=SelfStats)
    batch: int = 0
    now: float = T0
    judge: Callable[[], Diagnoser] = Diagnoser

    def __post_init__(self) -> None:
        self.queue, self.registry = _FedQueue(self.stats), QueryRegistry(self.judge)
        self.recorder = Recorder(self.folder / "recording")
        self.worker = Worker(
            self.queue, self.registry, self.stats, recorder=self.recorder, clock=lambda: self.now,
            steady=lambda: self.now,  # else the clock would seem to be set
        )  # fmt: skip

    def remember(self, batches: int) -> FedWorker:
        """Fills the histories; rules and snapshots have their turn in the last two batches."""
        for number in range(batches):
            for query in range(self.queries):
                for kind, data in self._events(query):
                    name = None if kind == "host" else f"query_{query:03}"
                    if number < batches - 2:
                        self.registry.ingest(Observation(self._at(kind), kind, name, orjson.loads(data)))
                    else:
                        self._turn(kind, name, data)
            self.batch += 1
        self.spent.clear()
        self.recorder.close()  # it goes on in a new segment
        return self

    def measure(self, events: int = MEASURED_EVENTS) -> FedWorker:
        """Feeds whole batches of all queries until so many events were taken."""
        gc.collect()
        while len(self.spent) < events:
            self.feed()
        self.recorder.close()
        return self

    def feed(self) -> Snapshot:
        """A batch of each query."""
        for query in range(self.queries):
            for kind, data in self._events(query):
                self._turn(kind, None if kind == "host" else f"query_{query:03}", data)
        self.batch += 1
        return self.worker.snapshot

    def scrape(self) -> tuple[float, int, int]:
        """Median ms of thread time, bytes and series of one scrape as text, after a batch of each query."""
        measured = self.spent.copy()
        took, body = median_ms(scraped, time.thread_time, self.feed, SCRAPES)
        self.spent = measured
        self.recorder.close()
        return took, len(body), sum(not line.startswith(b"#") for line in body.splitlines())

    @property
    def mean(self) -> float:
        """Mean milliseconds for one event."""
        return statistics.fmean(each.milliseconds for each in self.spent)

    @property
    def p99(self) -> float:
        """99th percentile of the milliseconds for one event."""
        return sorted(each.milliseconds for each in self.spent)[int(len(self.spent) * 0.99)]

    def core_share(self, config: Config, scrape: float) -> float:
        """Of a core, for its queries at a batch a second, with the collectors at the intervals of `config`, and scrapes
        of so many ms every SCRAPE_SECONDS."""
        each = {
            kind: statistics.fmean(spent.milliseconds for spent in self.spent if spent.kind == kind) / 1000
            for kind in ("progress", "tasks", "offsets", "host")
        }
        of_query = each["progress"] + each["tasks"] / config.tasks_interval + each["offsets"] / config.kafka_interval
        return self.queries * of_query + each["host"] / config.host_interval + scrape / 1000 / SCRAPE_SECONDS

    def _events(self, query: int) -> list[tuple[ObservationKind, bytes]]:
        return [("progress", progress(query, self.batch, self.partitions)), *around(self.batch, self.partitions, query)]

    def _at(self, kind: ObservationKind) -> float:
        return T0 + 2 * self.batch + (0.9 if kind == "progress" else 1.0)

    def _turn(self, kind: ObservationKind, query: str | None, data: bytes) -> None:
        self.now = self._at(kind)
        self.queue.waiting.append(Event(self.now, kind, query, data))
        began = time.thread_time()
        self.worker.turn()
        self.spent.append(Spent(kind, (time.thread_time() - began) * 1000))


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of log cost over log size, by least squares: 0 for a cost that does not grow, 1 for a proportional one.

    Raises ValueError with fewer than two sizes.
    """
    return statistics.linear_regression([*map(math.log, sizes)], [*map(math.log, costs)]).slope


def growth(say: Callable[[str], None], events: int = MEASURED_EVENTS) -> Iterator[Line]:
    """An event's and a scrape's cost over each size, the others being 1 query, 5 partitions and 200 batches."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fed = [_fed(folder, say, events, queries=size) for size in QUERIES]
        yield from _sweep("queries", QUERIES, fed)
        fifty, scrape = fed[QUERIES.index(50)]
        share = fifty.core_share(Config(), scrape)
        what = "50 queries at a batch a second, each collector at its interval, scraped every 15 s: share of a core"
        yield limit(what, share, f"{share:.1%}", MAX_CORE_SHARE, "< 25 %")
        fed = [_fed(folder, say, events, partitions=size) for size in PARTITIONS]
        yield from _sweep("source partitions", PARTITIONS, fed)
        fed = [_fed(folder, say, events, batches=size) for size in HISTORY_BATCHES]
        yield from _sweep("remembered batches", HISTORY_BATCHES, fed)
        yield from _series(folder, say)


def _fed(
    folder: Path, say: Callable[[str], None], events: int, queries: int = 1, partitions: int = 5, batches: int = BATCHES
) -> tuple[FedWorker, float]:
    """The worker after its events, and the ms of a scrape of what it has then."""
    where = folder / f"{queries}-{partitions}-{batches}"
    fed = FedWorker(queries, partitions, where).remember(batches).measure(events)
    say(f"{queries} queries, {partitions} partitions, {batches} batches: {fed.mean:.2f} ms an event")
    return fed, fed.scrape()[0]


def _sweep(what: str, sizes: Sequence[int], found: Sequence[tuple[FedWorker, float]]) -> Iterator[Line]:
    named = ", ".join(map(str, sizes))
    means, scrapes = [fed.mean for fed, _ in found], [took for _, took in found]
    for subject, costs in (("an event", means), ("a scrape", scrapes)):
        if what == "remembered batches" and subject == "a scrape":
            continue  # it reads a snapshot, which has no past
        figure = f"{', '.join(f'{cost:.2f}' for cost in costs)} ms"
        yield Line(f"{subject} with {named} {what}: mean", f"{figure}; exponent {exponent(sizes, costs):+.2f}")
    tails = [fed.p99 for fed, _ in found]
    figure = f"{', '.join(f'{tail:.2f}' for tail in tails)} ms"
    yield limit(f"an event with {named} {what}: p99", max(tails), figure, MAX_P99_MS, "<= 5 ms each")


def _series(folder: Path, say: Callable[[str], None]) -> Iterator[Line]:
    sizes, costs, figures = [], [], []
    for queries, partitions in ((1, 5), (10, 5), (50, 5), (50, WIDE_PARTITIONS)):
        took, size, series = FedWorker(queries, partitions, folder / f"{queries}-{partitions}").remember(12).scrape()
        say(f"{series:,} series: {took:.1f} ms a scrape")
        sizes.append(series)
        costs.append(took)
        figures.append(f"{took:.1f} ms for {series:,} ({size / 1e6:.2f} MB)")
    figure = f"{', '.join(figures)}; exponent {exponent(sizes, costs):+.2f}"
    of_most = costs[-1] * min(1.0, 10_000 / sizes[-1])
    yield limit("a scrape by its series, as text", of_most, figure, 60, "<= 60 ms for 10,000")
