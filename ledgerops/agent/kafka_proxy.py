"""Questions to the broker, asked by a process of their own (see `asking`): nothing in it can touch the driver."""

from __future__ import annotations

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

ANSWER_SECONDS = 4.0  # a broker that is merely slow answers in that time
START_SLACK_SECONDS = 4.0  # seconds more for a process that has just begun, on a busy machine
POLL_SECONDS = 0.1  # seconds: how soon a question is given up
MAX_FAILED_REQUESTS = 6  # failed requests after which a new process is started: a client may be broken for good
READ_BYTES = 65536  # bytes read at a time
# -P: a json.py in the job's folder is not ours
ROOT = Path(__file__).parents[2]  # where the package can be imported from
PROGRAM = "import sys; sys.path.append(sys.argv[1]); from ledgerops.agent.kafka_subprocess import main; main()"


class BrokerError(Exception):
    """The question had no answer, for a reason on this side: the broker may be well. The next one may have."""


class Broker:
    """Safe for several threads, which wait for each other. `connect` reads the settings and may raise UserError."""

    def __init__(self, connect: Callable[[], KafkaClient]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._vain = 0

    def ask(
        self,
        question: Mapping[str, Any],
        seconds: float = ANSWER_SECONDS,
        given_up: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """The answer. Raises BrokerError without one or when `given_up`, UserError for settings that cannot work."""
        end = time.monotonic() + 2 * seconds + START_SLACK_SECONDS  # offsets and settings are two questions
        if not self._lock.acquire(timeout=2 * seconds + START_SLACK_SECONDS):
            raise BrokerError("another request takes too long")
        try:
            return self._asked({**question, "seconds": seconds}, end, given_up)
        finally:
            self._lock.release()

    def worked(self, answered: bool) -> None:
        """Tells whether the answer was of use: after MAX_FAILED_REQUESTS that were none, another process asks."""
        with self._lock:
            self._vain = 0 if answered else self._vain + 1
            if self._vain >= MAX_FAILED_REQUESTS:
                self._end()

    def close(self) -> None:
        """Ends the process, and with it a question that is under way; no other begins."""
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
        if "unusable" in answer or "broken" in answer:
            self._end()
            if "unusable" in answer:
                raise UserError(answer["unusable"])
            raise BrokerError(answer["broken"])
        return answer

    def _begin(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise BrokerError("the observer is closed")
        if not sys.executable or getattr(sys, "frozen", False):
            raise UserError("kafka_servers needs a Python interpreter, and this application has none")
        client = self._connect()
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, str(ROOT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is the driver's; this one ends with its stdin
        )
        assert process.stdin is not None and process.stdout is not None
        for pipe in (process.stdin, process.stdout):
            os.set_blocking(pipe.fileno(), False)  # a stopped process reads nothing, and must not block the caller
        self._process, self._vain = process, 0
        # over a pipe: arguments and variables of a process can be read by others on the host
        self._rest = orjson.dumps({"servers": client.servers, "options": dict(client.options)}) + b"\n"
        return process

    def _exchange(
        self, process: subprocess.Popen[bytes], question: bytes, end: float, given_up: Callable[[], bool]
    ) -> bytes:
        assert process.stdin is not None and process.stdout is not None
        to, back = process.stdin.fileno(), process.stdout.fileno()
        unsent, answer = self._rest + question, b""
        self._rest = b""
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
