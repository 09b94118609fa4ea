"""The worker judges a query when it reports something, and by the clock. What it finds, and when, is compared with a
judgement every second."""

from collections.abc import Iterable, Iterator, Sequence

import orjson
import pytest

from ledgerops.agent import worker as module
from ledgerops.agent.queue import Event, EventQueue
from ledgerops.agent.worker import MAX_TICK_SECONDS, TICK_SECONDS, Worker
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.finding import Verdict
from ledgerops.model.recording import read
from ledgerops.model.records import Observation
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.replay import Replay
from tests.drills.saved import recording

TURN_SECONDS = 0.5  # the worker's wait without an event
# faults that are found by what does not come, by the broker's answers, and by batches
DRILLS = ["broker-down", "hung-sink", "slow-broker", "quiet"]

HEARD_SECONDS = 40.0  # of the recording, after which nothing of the query is reported
AFTERWARDS_SECONDS = 30.0  # after the recording, in which nothing is reported

Spans = dict[tuple[str, str], tuple[float, float]]  # of each root cause of a query: first and last seen


class Fed(EventQueue):
    waiting: Sequence[Event] = ()

    def take(self, timeout: float) -> list[Event]:
        events, self.waiting = list(self.waiting), ()
        return events


def by_worker(observations: Sequence[Observation]) -> Iterator[Verdict]:
    now, stats = observations[0].at, SelfStats()
    queue = Fed(stats)
    worker = Worker(queue, QueryRegistry(Diagnoser), stats, clock=lambda: now, steady=lambda: now)
    end = observations[-1].at + AFTERWARDS_SECONDS
    for seen in [*observations, None]:
        while (seen.at if seen else end) - now > TURN_SECONDS:
            now += TURN_SECONDS
            worker.turn()
            yield from worker.snapshot.verdicts()
        if seen is not None:
            now = max(now, seen.at)
            queue.waiting = [Event(seen.at, seen.kind, seen.query, orjson.dumps(seen.data))]
            worker.turn()
            yield from worker.snapshot.verdicts()


def every_second(observations: Sequence[Observation]) -> Iterator[Verdict]:
    return Replay().verdicts(observations, observations[-1].at + AFTERWARDS_SECONDS, every=1.0)


def spans(verdicts: Iterable[Verdict]) -> Spans:
    found: Spans = {}
    for verdict in verdicts:
        for root in verdict.root_causes:
            first, _ = found.get((verdict.query, root.rule), (verdict.at, 0.0))
            found[verdict.query, root.rule] = first, verdict.at
    return found


def assert_within(tick: float, observations: Sequence[Observation], monkeypatch: pytest.MonkeyPatch) -> Spans:
    monkeypatch.setattr(module, "tick_seconds", lambda queries: tick)
    expected, found = spans(every_second(observations)), spans(by_worker(observations))
    lasting = {key for key, (first, last) in expected.items() if last - first > tick}
    assert lasting <= found.keys() <= expected.keys()
    for key in found:
        assert abs(found[key][0] - expected[key][0]) <= tick + 1.0, key
    return found


ticks = pytest.mark.parametrize("tick", [TICK_SECONDS, MAX_TICK_SECONDS], ids=["few queries", "very many queries"])


@ticks
@pytest.mark.parametrize("name", DRILLS)
def test_the_worker_finds_the_same_within_the_period(name, tick, monkeypatch):
    assert_within(tick, list(read(recording(name))), monkeypatch)


@ticks
def test_a_query_of_which_nothing_is_heard_is_found_by_the_clock(tick, monkeypatch):
    observations = list(read(recording("quiet")))
    silence = observations[0].at + HEARD_SECONDS
    of_driver = [seen for seen in observations if seen.at < silence or seen.kind in ("host", "observer")]
    assert {rule for _, rule in assert_within(tick, of_driver, monkeypatch)} == {"query-stuck"}
