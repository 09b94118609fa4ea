"""A time limit for work with a peer: one that sends a byte now and then never runs into a socket's timeout."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

Returned = TypeVar("Returned")


def within(work: Callable[[], Returned], seconds: float) -> Returned:
    """The result of `work`, which runs in a daemon thread. Raises what it raises, and TimeoutError after `seconds`;
    the thread then runs until its work ends by itself. Once the interpreter shuts down, from Python 3.12 on, no thread
    can be started: then LAST works, or, where that was not begun, the caller, without a time limit."""
    done: Future[Returned] = Future()

    try:
        threading.Thread(target=_do, args=(work, done), name="ledgerops-deadline", daemon=True).start()
    except RuntimeError as error:
        if not str(error).endswith("interpreter shutdown"):
            raise  # no more threads
        return LAST.within(work, seconds) if LAST.begun else work()
    return _result(done, seconds)


class OneAtATime:
    """The same in one thread that is kept between questions: what py4j opens for a thread is opened once. While a
    question has no answer, and once it is closed, no other is asked."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._questions: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._open: Future[Any] | None = None
        self._closed = False
        self._lock = threading.RLock()  # a signal handler may close it while it begins

    @property
    def begun(self) -> bool:
        """Whether it has a thread; one that was forked has none."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self) -> None:
        """Starts the thread, also after `close`; else the first question does."""
        with self._lock:
            self._closed = False
            self._start()

    def _start(self) -> None:
        if not self.begun:
            thread = threading.Thread(target=self._answer, name=self._name, daemon=True)
            thread.start()
            self._thread = thread

    def within(self, work: Callable[[], Returned], seconds: float) -> Returned:
        """The result of `work`. Raises what it raises, and TimeoutError after `seconds`, or at once while an earlier
        question is open or after `close`. Call it from one thread."""
        if self._open is not None and not self._open.done():
            raise TimeoutError("an earlier question still has no answer")
        with self._lock:
            if self._closed:
                raise TimeoutError("nothing is asked any more")
            self._start()
            self._open = done = Future[Returned]()
            self._questions.put((work, done))
        return _result(done, seconds)

    def close(self) -> None:
        """Ends the thread, once an open question has its answer. May be called twice."""
        with self._lock:
            self._closed = True
            if self._thread is not None:
                self._thread = None
                self._questions.put(None)

    def _answer(self) -> None:
        while (question := self._questions.get()) is not None:
            _do(*question)
            del question  # with what it holds: the thread may wait long for the next


LAST = OneAtATime("ledgerops-last")  # for work at the end of the interpreter; whoever may have some begins it before


def _do(work: Callable[[], Returned], done: Future[Returned]) -> None:
    try:
        done.set_result(work())
    except BaseException as error:
        done.set_exception(error)


def _result(done: Future[Returned], seconds: float) -> Returned:
    try:
        return done.result(timeout=max(0.0, seconds))
    except TimeoutError:
        if done.done():
            raise
        raise TimeoutError(f"no answer within {seconds:.3g} s") from None
