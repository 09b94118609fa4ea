"""What many queries with slow triggers cost the worker: how often each is judged, and the share of a core.

Time is simulated. The thread time of the worker, and of a scrape every SCRAPE_SECONDS, is divided by its seconds.
"""

import gc
import heapq
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from ledgerops.agent.queue import Event
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.model.finding import Verdict
from ledgerops.signals.query_view import QueryView
from load.bench.core import PARTITIONS, T0, around, progress, scraped
from load.bench.growth import SCRAPE_SECONDS, FedWorker
from load.bench.lines import Line, limit

QUERIES, LIMITED = (50, 500, 1000), 500
TRIGGER_SECONDS = 10.0
OFFSETS_SECONDS = 2.0
TASKS_AFTER_SECONDS = 0.5
TURN_SECONDS = 0.5  # the worker's wait without an event
MAX_EVENTS_PER_TURN = 200
WARM_SECONDS, MEASURED_SECONDS = 60.0, 30.0
MAX_SHARE = 0.25  # of a core, for LIMITED queries


@dataclass(frozen=True)
class Cost:
    """Per simulated second: seconds of thread time in all, of it in judging, and how many judgements."""

    busy: float
    judging: float
    judgements: float


class TimedDiagnoser(Diagnoser):
    """Adds the thread time of each judgement to `taken`."""

    def __init__(self, taken: list[float]) -> None:
        super().__init__()
        self._taken = taken

    def __call__(self, view: QueryView, brief: bool = False) -> Verdict:
        began = time.thread_time()
        verdict = super().__call__(view, brief)
        self._taken.append(time.thread_time() - began)
        return verdict


def many(say: Callable[[str], None]) -> Iterator[Line]:
    """Yields the lines of the part."""
    for queries in QUERIES:
        found = simulate(queries)
        figure = f"{found.busy:.1%}, of it rules {found.judging:.1%}; {found.judgements:.0f} judgements a second"
        say(f"{queries} queries: {figure}")
        what = f"{queries:,} queries at a batch every {TRIGGER_SECONDS:.0f} s: share of a core"
        if queries == LIMITED:
            yield limit(what, found.busy, figure, MAX_SHARE, f"< {MAX_SHARE:.0%}")
        else:
            yield Line(what, figure)


def simulate(queries: int, warm: float = WARM_SECONDS, measured: float = MEASURED_SECONDS) -> Cost:
    """Runs the worker through `warm` and then `measured` simulated seconds."""
    judging: list[float] = []
    spent, warming = 0.0, True
    with tempfile.TemporaryDirectory() as name:
        fed = FedWorker(queries, PARTITIONS, Path(name), judge=lambda: TimedDiagnoser(judging))
        events = list(_events(queries, warm + measured))
        due = T0
        for at, taken in _turns(events, T0 + warm + measured):
            if warming and at >= T0 + warm:
                gc.collect()
                judging.clear()
                spent, warming = 0.0, False
            fed.now = at
            fed.queue.waiting.extend(taken)
            began = time.thread_time()
            fed.worker.turn()
            if at >= due:
                scraped(fed.worker.snapshot)
                due += SCRAPE_SECONDS
            spent += time.thread_time() - began
        fed.recorder.close()
    return Cost(spent / measured, sum(judging) / measured, len(judging) / measured)


def _turns(events: Sequence[Event], end: float) -> Iterator[tuple[float, Sequence[Event]]]:
    """When the worker has its turns, and what it takes: the events of one instant, or none after TURN_SECONDS."""
    now, index = T0, 0
    while now < end:
        following = events[index].at if index < len(events) else end
        if following - now > TURN_SECONDS:
            now += TURN_SECONDS
            yield now, ()
            continue
        now, first = following, index
        while index < len(events) and events[index].at == now and index - first < MAX_EVENTS_PER_TURN:
            index += 1
        yield now, events[first:index]


def _events(queries: int, seconds: float) -> Iterator[Event]:
    """All events in the order of time."""
    batches = int(seconds / TRIGGER_SECONDS) + 1
    each = [_batches(query, TRIGGER_SECONDS * query / queries, batches) for query in range(queries)]
    heads = [_heads(query, seconds) for query in range(queries)]
    return heapq.merge(*each, *heads, _machine(seconds), key=lambda event: event.at)


def _batches(query: int, shift: float, batches: int) -> Iterator[Event]:
    for batch in range(batches):
        at = T0 + shift + TRIGGER_SECONDS * batch
        yield Event(at + 0.8, "progress", None, progress(query, batch, at=at))
        for kind, data in around(batch, PARTITIONS, query):
            if kind == "plan":
                data = orjson.dumps({**orjson.loads(data), "trigger_interval": TRIGGER_SECONDS})
            if kind in ("plan", "tasks"):
                yield Event(at + 0.8 + TASKS_AFTER_SECONDS, kind, f"query_{query:03}", data)


def _heads(query: int, seconds: float) -> Iterator[Event]:
    oldest = {"transactions": {str(partition): 0 for partition in range(PARTITIONS)}}
    for number in range(1, int(seconds / OFFSETS_SECONDS)):
        head = int(2000 // PARTITIONS * number * OFFSETS_SECONDS / TRIGGER_SECONDS)
        heads = {"transactions": {str(partition): head + partition for partition in range(PARTITIONS)}}
        data = {"run_id": f"run-{query:04}", "latest": heads, "earliest": oldest}
        yield Event(T0 + number * OFFSETS_SECONDS, "offsets", f"query_{query:03}", orjson.dumps(data))


def _machine(seconds: float) -> Iterator[Event]:
    for number in range(int(seconds / TRIGGER_SECONDS)):
        at = T0 + number * TRIGGER_SECONDS
        for kind, data in around(number * 5, PARTITIONS):
            if kind == "host":
                yield Event(at, "host", None, orjson.dumps({**orjson.loads(data), "at": at}))
