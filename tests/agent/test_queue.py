"""The queue between collectors and the worker takes bounded memory, and reports what it counts."""

from concurrent.futures import ThreadPoolExecutor

from ledgerops.agent import queue
from ledgerops.agent.queue import EventQueue
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.observations import build
from ledgerops.model.records import Observer
from tests.agent.fakes import taken
from tests.build import T0


def test_large_events_fill_the_queue_by_their_size(monkeypatch):
    monkeypatch.setattr(queue, "MAX_BYTES", 1000)
    box = EventQueue(SelfStats())
    assert [box.put("progress", "x" * 400) for _ in range(4)] == [True, True, False, False]
    assert (box.stats.dropped, len(box)) == (2, 2)


def test_an_event_that_is_larger_than_the_limit_is_taken_when_nothing_waits(monkeypatch):
    monkeypatch.setattr(queue, "MAX_BYTES", 1000)
    box = EventQueue(SelfStats())
    assert [box.put("progress", b"x" * 5000), box.put("idle", "{}")] == [True, False]
    assert len(box.take(0.0)) == 1
    assert box.put("idle", "{}")


def test_what_was_taken_or_found_no_place_leaves_room(monkeypatch):
    monkeypatch.setattr(queue, "MAX_BYTES", 1000)
    box = EventQueue(SelfStats(), size=2)
    for _ in range(3):
        assert [box.put("progress", "x" * 300) for _ in range(3)] == [True, True, False]
        box.wake()
        assert len(box.take(0.0)) == 2

    assert box.put("progress", "x" * 1000)


def test_several_threads_lose_no_count(monkeypatch):
    monkeypatch.setattr(queue, "MAX_BYTES", 100_000)
    box = EventQueue(SelfStats())

    def work(number):
        for _ in range(300):
            box.put("progress", "x" * (number + 1))
            box.take(0.0)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    while box.take(0.0):
        pass

    assert box._bytes == 0


def test_what_the_observer_counts_about_itself_is_recorded():
    box = EventQueue(SelfStats())
    box.stats.events["progress"] += 4
    box.stats.dropped = 2
    box.stats.spent("judge", 0.5)
    box.stats.spent("parse", 0.25)
    for _ in range(3):
        box.stats.error("tasks")
    box.report()

    [(kind, data)] = taken(box)
    seen = build(Observer, data, at=T0)
    assert (kind, seen.worker_seconds, seen.collector_errors) == ("observer", 0.75, {"tasks": 3})
    assert (seen.queue_size, seen.queue_limit, seen.dropped, seen.events) == (0, box.limit, 2, 4)


def test_a_full_queue_loses_the_look_and_nothing_else():
    box = EventQueue(SelfStats(), 1)
    for _ in range(2):
        box.report()
    assert box.stats.dropped == 1
