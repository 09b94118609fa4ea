"""Questions to the Kafka broker, put to a process of its own (see `kafka_subprocess`): it cannot harm the driver."""

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from ledgerops.common.kafka import KafkaClient
from ledgerops.errors import UserError

ANSWER_SECONDS = 4.0  # a slow broker still answers in that time
START_SLACK_SECONDS = 4.0  # more for a process that has just started on a busy machine
POLL_SECONDS = 0.1  # how soon a question can be abandoned
MAX_FAILED_REQUESTS = 6  # in a row, after which a new process is started: a client may be broken for good
READ_BYTES = 65536  # at a time
ROOT = Path(__file__).parents[2]  # where the package can be imported from
PROGRAM = "import sys; sys.path.append(sys.argv[1]); from ledgerops.agent.kafka_subprocess import main; main()"


class BrokerError(Exception):
    """A question was not answered for a reason on this side: the broker may be up, and the next question may work."""


class BrokerProxy:
    """Safe for several threads, which take turns. `connect` reads the settings and may raise UserError."""

    def __init__(self, connect: Callable[[], KafkaClient]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._unsent = b""  # the settings, which go before the first question
        self._failed_requests = 0

    def ask(
        self, question: Mapping[str, Any], seconds: float = ANSWER_SECONDS, given_up: Callable[[], bool] = lambda: False
    ) -> dict[str, Any]:
        """The answer. Raises BrokerError without one or when `given_up`, UserError for settings that cannot work."""
        most = 2 * seconds + START_SLACK_SECONDS  # offsets and settings are two questions
        if not self._lock.acquire(timeout=most):
            raise BrokerError("another request takes too long")
        try:  # from now on: a question that had to wait must not end the process that answers all others
            return self._asked({**question, "seconds": seconds}, time.monotonic() + most, given_up)
        finally:
            self._lock.release()

    def note_answer(self, useful: bool) -> None:
        """Counts answers in a row that were of no use: after MAX_FAILED_REQUESTS a new process is started."""
        with self._lock:
            self._count(useful)

    def close(self) -> None:
        """Ends the process, and with it a question in progress; no other can begin."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:  # a question notices within POLL_SECONDS
            self._end()

    def close_inherited(self) -> None:
        """In a forked child: closes its copies of the pipes; the process is the parent's, and ends with its stdin."""
        process, self._process, self._closed = self._process, None, True
        if process is not None:
            process.returncode = 0  # else its destructor warns
            _close_pipes(process)

    def _asked(self, question: Mapping[str, Any], end: float, given_up: Callable[[], bool]) -> dict[str, Any]:
        try:
            process = self._process or self._begin()
            line = self._exchange(process, orjson.dumps(question) + b"\n", end, given_up)
            answer: dict[str, Any] = orjson.loads(line)
        except (OSError, ValueError, TimeoutError) as error:
            self._end()
            raise BrokerError(f"the Kafka client process failed: {error or 'timed out'}") from None
        if "broken" in answer:
            self._end()
            raise BrokerError(answer["broken"])
        if "unusable" in answer:
            self._count(False)  # the next process reads the settings again
            raise UserError(answer["unusable"])
        return answer

    def _count(self, useful: bool) -> None:
        self._failed_requests = 0 if useful else self._failed_requests + 1
        if self._failed_requests >= MAX_FAILED_REQUESTS:
            self._end()

    def _begin(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise BrokerError("the observer is closed")
        if not sys.executable or getattr(sys, "frozen", False):
            raise UserError("kafka_servers needs a Python interpreter, and this application has none")
        client = self._connect()
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, str(ROOT)],  # -P: a json.py in the job's folder is not ours
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is the driver's; this one ends with its stdin
        )
        assert process.stdin is not None and process.stdout is not None
        for pipe in (process.stdin, process.stdout):
            os.set_blocking(pipe.fileno(), False)  # a stopped process reads nothing, and must not block the caller
        self._process, self._failed_requests = process, 0
        # over a pipe: arguments and variables of a process can be read by others on the host
        self._unsent = orjson.dumps({"servers": client.servers, "options": dict(client.options)}) + b"\n"
        return process

    def _exchange(
        self, process: subprocess.Popen[bytes], question: bytes, end: float, given_up: Callable[[], bool]
    ) -> bytes:
        assert process.stdin is not None and process.stdout is not None
        to, back = process.stdin.fileno(), process.stdout.fileno()
        unsent, answer = self._unsent + question, b""
        self._unsent = b""
        poll = select.poll()  # select knows no descriptor above 1,023, of which a driver has many
        poll.register(back, select.POLLIN | select.POLLHUP)
        poll.register(to, select.POLLOUT)
        while b"\n" not in answer:
            if given_up() or self._closed or time.monotonic() > end:
                raise TimeoutError("timed out")
            for descriptor, _ in poll.poll(1000 * POLL_SECONDS):
                if descriptor == to:
                    unsent = unsent[os.write(to, unsent) :]
                    if not unsent:
                        poll.unregister(to)
                else:
                    part = os.read(back, READ_BYTES)
                    if not part:
                        raise OSError("it has ended")
                    answer += part
        return answer

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        _close_pipes(process)
        process.wait()


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:
            pass
