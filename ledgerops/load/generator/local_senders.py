"""A team of processes on this machine: what `ledgerops load --workers N` is.

They are plain processes and not locust's: a load without a web interface needs neither locust nor its event loop, ends
at an agreed record, and reports in one line what went wrong. Under locust the same members are on its workers.
"""

from __future__ import annotations

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

STOP_CHECK_SECONDS = 0.1  # between two checks for a stop
_LEAVE = 5.0  # seconds for a process to end when its work is done


def conduct(
    order: LoadRequest,
    workers: int,
    stopped: Callable[[], bool],
    say: Callable[[str], None] = lambda text: None,
    show: Callable[[dict[int, SentCounts]], None] = lambda books: None,
) -> Coordinator:
    """Sends the order with that number of processes, until it is done or `stopped`.

    `show` gets the latest books by member. Raises UserError when a member could not begin.
    """
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(workers)]
    processes = [
        context.Process(target=_member, args=(theirs,), name=f"sender {number}", daemon=True)
        for number, (_, theirs) in enumerate(pipes)
    ]
    with _unheard():
        for process, (_, theirs) in zip(processes, pipes, strict=True):
            process.start()
            theirs.close()
    ours = {number: pipe for number, (pipe, _) in enumerate(pipes)}

    def send(member: int, kind: str, data: Any) -> None:
        try:
            ours[member].send((kind, data))
        except OSError:
            pass  # it has ended, which its end of the pipe shows

    conductor = Coordinator(order, list(ours), send, say)
    try:
        conductor.start()
        _listen(conductor, ours, stopped, show)
    finally:
        for pipe in ours.values():
            pipe.close()
        for process in processes:
            process.join(_LEAVE)
            if process.is_alive():
                process.kill()
                process.join()
    if conductor.failure is not None:
        raise UserError(conductor.failure)
    return conductor


@contextmanager
def _unheard() -> Iterator[None]:
    """Processes started within ignore Ctrl-C, which reaches the whole group, and SIGTERM: the parent decides."""
    resource_tracker.ensure_running()  # its own start would let the signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _listen(
    conductor: Coordinator,
    pipes: dict[int, Connection],
    stopped: Callable[[], bool],
    show: Callable[[dict[int, SentCounts]], None],
) -> None:
    numbers = {pipe: number for number, pipe in pipes.items()}
    while not conductor.over:
        if stopped():
            conductor.stop()
        for pipe in wait(list(numbers), STOP_CHECK_SECONDS):
            assert isinstance(pipe, Connection)
            try:
                kind, data = pipe.recv()
            except (EOFError, OSError):
                conductor.lost(numbers.pop(pipe))
                continue
            conductor.heard(numbers[pipe], kind, data)
        show({int(str(member)): sent for member, sent in conductor.books.items()})


def _member(pipe: Connection) -> None:
    """A process's work."""

    def send(kind: str, data: Any) -> None:
        pipe.send((kind, data))

    member = ShareSender(send)
    pause = 0.0
    try:
        while not member.over:
            if member.ordered:
                member.connect()
            if pipe.poll(pause):
                member.heard(*pipe.recv())
                pause = 0.0
            else:
                pause = member.step()
    except (EOFError, OSError):
        pass  # the parent has ended, so no one reads the message
