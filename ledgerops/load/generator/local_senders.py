"""Senders that are processes on this machine: what `ledgerops load --workers N` starts.

They are plain processes and not locust's: a load without a web interface needs neither locust nor its event loop, ends
at an agreed record, and reports in one line what went wrong. Under locust the same senders are on its workers.
"""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from ledgerops.errors import UserError
from ledgerops.load.generator.accounting import SentCounts
from ledgerops.load.generator.coordinator import Coordinator
from ledgerops.load.generator.request import LoadRequest
from ledgerops.load.generator.sender import ShareSender

STOP_CHECK_SECONDS = 0.1
EXIT_SECONDS = 5.0  # for a process to end when its work is done


def run_senders(
    request: LoadRequest,
    workers: int,
    stopped: Callable[[], bool],
    say: Callable[[str], None] = lambda text: None,
    show: Callable[[dict[int, SentCounts]], None] = lambda counts: None,
) -> Coordinator:
    """Sends the load with that number of processes, until it is done or `stopped`.

    `show` gets the latest counts by sender. Raises UserError when a sender could not begin.
    """
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(workers)]
    processes = [
        context.Process(target=_run_sender, args=(theirs,), name=f"sender {number}", daemon=True)
        for number, (_, theirs) in enumerate(pipes)
    ]
    with _without_signals():
        for process, (_, theirs) in zip(processes, pipes, strict=True):
            process.start()
            theirs.close()
    ours = {number: pipe for number, (pipe, _) in enumerate(pipes)}

    def send(sender: int, kind: str, data: Any) -> None:
        try:
            ours[sender].send((kind, data))
        except OSError:
            pass  # it has ended, which its end of the pipe shows

    coordinator = Coordinator(request, list(ours), send, say)
    try:
        coordinator.start()
        _listen(coordinator, ours, stopped, show)
    finally:
        for pipe in ours.values():
            pipe.close()
        for process in processes:
            process.join(EXIT_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
    if coordinator.failure is not None:
        raise UserError(coordinator.failure)
    return coordinator


@contextmanager
def _without_signals() -> Iterator[None]:
    """Processes started within ignore Ctrl-C, which reaches the whole group, and SIGTERM: the parent decides."""
    resource_tracker.ensure_running()  # its own start would let the signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _listen(
    coordinator: Coordinator,
    pipes: dict[int, Connection],
    stopped: Callable[[], bool],
    show: Callable[[dict[int, SentCounts]], None],
) -> None:
    numbers = {pipe: number for number, pipe in pipes.items()}
    while not coordinator.over:
        if stopped():
            coordinator.stop()
        for pipe in wait(list(numbers), STOP_CHECK_SECONDS):
            assert isinstance(pipe, Connection)
            try:
                kind, data = pipe.recv()
            except (EOFError, OSError):
                coordinator.lost(numbers.pop(pipe))
                continue
            coordinator.receive(numbers[pipe], kind, data)
        show({int(str(sender)): sent for sender, sent in coordinator.counts.items()})


def _run_sender(pipe: Connection) -> None:
    """What each process does."""

    sender = ShareSender(lambda kind, data: pipe.send((kind, data)))
    pause = 0.0
    try:
        while not sender.over:
            if sender.must_connect:
                sender.connect()
            if pipe.poll(pause):
                sender.receive(*pipe.recv())
                pause = 0.0
            else:
                pause = sender.step()
    except (EOFError, OSError):
        pass  # the parent has ended, so no one reads the message
