"""A stop that a signal asks for, at whatever moment it comes."""

import signal
import sys
import threading

import pytest

from ledgerops.common.shutdown import Stop


def test_nobody_asked():
    stop = Stop()
    assert not stop.wait(0.0) and not stop.wait(-1.0) and not stop.wait(0.01)
    assert not stop.asked and stop.reason is None


def test_who_waits_hears_at_once_and_so_does_who_waits_later():
    stop, heard = Stop(), []
    threads = [threading.Thread(target=lambda: heard.append(stop.wait(60.0))) for _ in range(3)]
    for thread in threads:
        thread.start()
    stop.ask("the first")
    stop.ask("the second")
    for thread in threads:
        thread.join(10.0)

    assert heard == [True] * 3
    assert stop.wait(60.0) and stop.wait(60.0)
    assert stop.asked and stop.reason == "the first"


def test_a_wait_ends_though_its_time_is_over_before_it_begins():
    """On a busy machine the thread may lose its core at any step, and in 10,000 short waits it does."""
    waits = threading.Thread(target=lambda: [Stop().wait(2e-6) for _ in range(10_000)], daemon=True)
    waits.start()
    waits.join(60.0)
    assert not waits.is_alive()


def test_a_signal_may_come_at_any_step_of_waiting():
    """Its handler runs in the thread that waits, between two steps of it, and must not wait for that thread."""
    stuck = []
    for number in range(40):
        stop = Stop()
        thread = threading.Thread(target=_waiting, args=(stop, number), daemon=True)
        thread.start()
        thread.join(10.0)
        if thread.is_alive():
            stuck.append(number)
            break

    assert stuck == []


def _waiting(stop: Stop, number: int) -> None:
    """Waits, and asks at the step `number` of doing so, as the handler of a signal would."""
    steps = iter(range(1000))

    def trace(frame, event, arg):
        if next(steps) == number:
            sys.settrace(None)
            stop.ask("interrupted")
        return trace

    sys.settrace(trace)
    while not stop.wait(0.001):
        pass
    sys.settrace(None)


def test_a_calm_stop_is_only_asked_and_another_interrupts():
    before = signal.getsignal(signal.SIGINT)
    stop = Stop()
    with stop.on_signals():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        stop.calm()
        signal.raise_signal(signal.SIGTERM)
        assert stop.wait(60.0)

    assert stop.reason == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before
