import threading

from ledgerops.agent.poller import Poller
from ledgerops.metrics.self_watch import SelfStats
from tests.programs import python


def test_a_collector_that_raises_is_counted_said_once_and_asked_again(warned):
    stats, looked = SelfStats(), threading.Semaphore(0)

    def look():
        looked.release()
        raise RuntimeError("no such table\nand a stack")

    collector = Poller("tasks", 0.001, look, stats)
    collector.start()
    for _ in range(3):
        assert looked.acquire(timeout=60)
    for _ in range(2):
        collector.stop(timeout=60)

    assert stats.collector_errors["tasks"] >= 2
    assert warned.messages == [
        "the collector tasks failed (RuntimeError: no such table); it is retried, and further failures are only counted"
    ]


def test_a_collector_may_ask_to_be_called_sooner_than_usual():
    looked = threading.Semaphore(0)

    def look():
        looked.release()
        return 0.001

    collector = Poller("driver_code", 3600.0, look, SelfStats())
    collector.start()
    assert all(looked.acquire(timeout=60) for _ in range(3))
    collector.stop(timeout=60)


def test_stopping_does_not_wait_for_the_interval():
    collector = Poller("host", 3600.0, lambda: None, SelfStats())
    collector.start()
    collector.stop(timeout=60)
    assert not collector._thread.is_alive()


# asks an executor, as a Spark Connect client does; a thread that is no daemon holds the end of the interpreter up
ENDING = """
import concurrent.futures, logging, threading
from ledgerops.agent.poller import Poller
from ledgerops.metrics.self_watch import SelfStats

logging.basicConfig(format="%(message)s")
executor, failed, stats = concurrent.futures.ThreadPoolExecutor(1), threading.Semaphore(0), SelfStats()

def collect():
    try:
        executor.submit(int).result()
    except RuntimeError as error:
        failed.release()
        raise

def wait():
    for _ in range(3):
        failed.acquire(timeout=60)
    print(f"{stats.collector_errors.total()} errors")

threading.Thread(target=wait).start()
Poller("watchdog", 0.001, collect, stats).start()
"""


def test_what_fails_because_the_interpreter_is_ending_is_neither_counted_nor_logged():
    done = python("-c", ENDING)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 errors\n", "")
