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

import ledgerops
from ledgerops.errors import UserError
from ledgerops.kafkaclient import KafkaClient

ANSWER_SECONDS = 4.0  # a broker that is merely slow answers in that time
SLACK = 4.0  # seconds more for a process that has just begun, on a busy machine
STEP = 0.1  # seconds: how soon a question is given up
PATIENCE = 6  # questions in vain after which another process asks: a client may have lost its way for good


class BrokerError(Exception):
    """The question had no answer; the message says why. The next one may have."""


class Broker:
    """Safe for several threads, which wait for each other. `connect` reads the settings and may raise UserError."""

    def __init__(self, connect: Callable[[], KafkaClient]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
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
        with self._lock:
            process = self._process or self._begin()
            try:
                line = self._exchange(process, {**question, "seconds": seconds}, seconds, given_up)
                answer: dict[str, Any] = orjson.loads(line)
            except (OSError, ValueError, TimeoutError) as error:
                self._end()
                raise BrokerError(str(error) or "timed out") from None
            if "unusable" in answer or "broken" in answer:
                self._end()
                if "unusable" in answer:
                    raise UserError(answer["unusable"])
                raise BrokerError(answer["broken"])
            return answer

    def worked(self, answered: bool) -> None:
        """Tells whether the answer was of use: after PATIENCE that were none, another process asks."""
        with self._lock:
            self._vain = 0 if answered else self._vain + 1
            if self._vain >= PATIENCE:
                self._end()

    def close(self) -> None:
        """Ends the process, and with it a question that is under way."""
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._end()

    def _begin(self) -> subprocess.Popen[bytes]:
        client = self._connect()
        root = str(Path(ledgerops.__file__).parent.parent)
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", "ledgerops.collect.asking"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # a Ctrl-C is the driver's; this one ends with its stdin
        )
        self._rest, self._vain = b"", 0
        assert process.stdin is not None
        # over a pipe: arguments and variables of a process can be read by others on the host
        process.stdin.write(orjson.dumps({"servers": client.servers, "options": dict(client.options)}) + b"\n")
        process.stdin.flush()
        return process

    def _exchange(
        self,
        process: subprocess.Popen[bytes],
        question: Mapping[str, Any],
        seconds: float,
        given_up: Callable[[], bool],
    ) -> bytes:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(orjson.dumps(question) + b"\n")
        process.stdin.flush()
        end = time.monotonic() + 2 * seconds + SLACK  # offsets and settings are two questions
        while b"\n" not in self._rest:
            ready, _, _ = select.select([process.stdout], [], [], STEP)
            if ready:
                part = os.read(process.stdout.fileno(), 65536)
                if not part:
                    raise OSError("the asking process has ended")
                self._rest += part
            elif given_up() or time.monotonic() > end:
                raise TimeoutError("timed out")
        line, self._rest = self._rest.split(b"\n", 1)
        return line

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass
        process.wait()
