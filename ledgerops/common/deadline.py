"""A time limit for work with a peer: one that sends a byte now and then never runs into a socket's timeout."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Returned = TypeVar("Returned")


def within(work: Callable[[], Returned], seconds: float) -> Returned:
    """The result of `work`, which runs in a daemon thread. Raises what it raises, and TimeoutError after `seconds`;
    the thread then runs until its work ends by itself. Once the interpreter shuts down, from Python 3.12 on, no thread
    can be started: the work is then done here, without a time limit of its own."""
    done: Future[Returned] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    try:
        threading.Thread(target=run, name="ledgerops-deadline", daemon=True).start()
    except RuntimeError as error:
        if not str(error).endswith("interpreter shutdown"):
            raise  # no more threads
        return work()
    try:
        return done.result(timeout=max(0.0, seconds))
    except TimeoutError:
        if done.done():
            raise
        raise TimeoutError(f"no answer within {seconds:.3g} s") from None
