"""A server process in a session of its own. It ends with its children, and at the latest with the process that
started it, even where that is killed."""

import random
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from ledgerops.errors import UserError

# below what Linux gives to outgoing connections: a port from there may be taken by one while its server is down, and a
# client that knocks on a free port of that range can be connected to itself
PORTS = range(20_000, 32_000)
_given: set[int] = set()  # ports: who was given one may not listen yet
# reads a line from the process that started the server; the end of the file instead means that this process is gone
_GUARD = ("/bin/sh", "-c", 'read -r released || kill -s KILL -- "-$1"', "guard")
_ERROR = re.compile(r"\b(ERROR|FATAL|Exception)\b")


class Guard:
    """Kills the group of process `pid`, which leads it, once this process is gone, however it went."""

    def __init__(self, pid: int) -> None:
        self._process = subprocess.Popen(
            [*_GUARD, str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must not end it before the server
        )

    def release(self) -> None:
        """Lets the group go on without this process; again, it does nothing."""
        if self._process.returncode is None:
            self._process.communicate(b"released\n")


class Process:
    """Starts `command`; what it prints is added to the file `printed`, what it logs it writes to `log` itself. Further
    options are those of Popen."""

    def __init__(
        self, name: str, command: Sequence[str | Path], printed: Path, log: Path | None = None, **options: Any
    ) -> None:
        self.name = name
        self._printed, self._log = printed, log
        with printed.open("ab") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, **options
            )
        self._guard = Guard(self.pid)

    @property
    def pid(self) -> int:
        """The process id, also after the end."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; -N of a process that signal N has ended."""
        return self._process.poll()

    @property
    def alive(self) -> bool:
        """Whether the process still runs. It is reaped, and its guard released, once it has ended."""
        if self._process.poll() is None:
            return True
        self._guard.release()
        return False

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Returns once `ready` says so. UserError with the end of the log when the process dies or takes too long."""
        end = time.monotonic() + seconds
        while not ready():
            if not self.alive:
                raise UserError(f"{self.name} stopped while starting: {self.last_words()}")
            if time.monotonic() > end:
                self.kill()
                raise UserError(f"{self.name} was not ready after {seconds:.0f} s: {self.last_words()}")
            time.sleep(0.05)

    def last_words(self) -> str:
        """The last error that it logged or printed, else the last line, and in which file that is."""
        said: list[tuple[bool, str]] = []
        for file in (self._log, self._printed):
            if file is not None and file.is_file():
                lines = filter(str.strip, file.read_text("utf-8", "replace").splitlines())
                said += [(bool(_ERROR.search(line)), f"{line.strip()} (see {file})") for line in lines]
        errors = [line for error, line in said if error]
        return (errors or [line for _, line in said] or [f"it printed nothing (see {self._printed})"])[-1]

    def stop(self, gently: signal.Signals = signal.SIGTERM, seconds: float = 30.0) -> None:
        """Asks it to stop, and kills what is left after `seconds`."""
        try:
            if self.alive:
                self._process.send_signal(gently)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(seconds)
        finally:  # also where whoever waits is interrupted
            self.kill()

    def kill(self) -> None:
        """SIGKILL to it and its children, the parent first, so that it restarts none; returns when all are gone."""
        family = self._family()
        send(family, signal.SIGKILL)
        self._process.wait()
        psutil.wait_procs(family, timeout=10)
        self._guard.release()

    def _family(self) -> list[psutil.Process]:
        if not self.alive:
            return []
        try:
            parent = psutil.Process(self.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


class Server:
    """Has a `Process` while it is up; it can be stopped and killed. Nothing happens while it is down."""

    gentle_signal = signal.SIGTERM
    _process: Process | None = None

    @property
    def pid(self) -> int | None:
        """The server's process id; None while it is down."""
        return self._process.pid if self._process and self._process.alive else None

    def stop(self) -> None:
        """A controlled shutdown: data are written, clients are cut off."""
        if self._process:
            self._process.stop(self.gentle_signal)

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, no connection is closed in order."""
        if self._process:
            self._process.kill()


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on now, and that was not given before in this process."""
    for port in random.SystemRandom().sample(PORTS, 200):
        if port in _given:
            continue
        if port_problem(port) is None:
            _given.add(port)
            return port
    raise UserError(f"no free port between {PORTS.start} and {PORTS.stop} on 127.0.0.1")


def answers(url: str) -> bool:
    """Whether an HTTP server answers at `url` with 200 within two seconds."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def port_problem(port: int) -> OSError | None:
    """Why no server could listen on this TCP port of 127.0.0.1 now. Raises OverflowError above 65535."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # old connections do not keep a server from it
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error
    return None


def send(processes: Iterable[psutil.Process], what: signal.Signals) -> None:
    """Sends a signal to those of the processes that have not ended."""
    for process in processes:
        try:
            process.send_signal(what)
        except psutil.NoSuchProcess:
            continue
