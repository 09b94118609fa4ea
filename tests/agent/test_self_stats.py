from ledgerops.agent.queue import EventQueue
from ledgerops.agent.self_stats import ObserverCollector
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.observations import build
from ledgerops.model.records import Observer
from tests.agent.fakes import queue, taken
from tests.build import T0


def test_what_the_observer_counts_about_itself_is_recorded():
    box = queue()
    box.stats.events["progress"] += 4
    box.stats.dropped = 2
    box.stats.spent("judge", 0.5)
    box.stats.spent("parse", 0.25)
    for _ in range(3):
        box.stats.error("tasks")
    ObserverCollector(box).collect()

    [(kind, data)] = taken(box)
    seen = build(Observer, data, at=T0)
    assert (kind, seen.worker_seconds, seen.collector_errors) == ("observer", 0.75, {"tasks": 3})
    assert (seen.queue_size, seen.queue_limit, seen.dropped, seen.events) == (0, box.limit, 2, 4)


def test_a_full_queue_loses_the_look_and_nothing_else():
    box = EventQueue(SelfStats(), 1)
    for _ in range(2):
        ObserverCollector(box).collect()
    assert box.stats.dropped == 1
