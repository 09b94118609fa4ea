"""Injects faults from outside the driver: the control file, signals to processes, servers and their proxies."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from ledgerops.common.shutdown import Stop
from ledgerops.drills.harness.fault_control import FaultControl
from ledgerops.drills.harness.processes import command_line, descendants
from ledgerops.errors import UserError

POLL_SECONDS = 0.1


class Injector:
    """The tools of the `inject` and `repair` of the drill with this name, in the process that runs it."""

    def __init__(self, folder: Path, drill: str, names: Mapping[str, str], seed: int, stop: Stop | None = None) -> None:
        self.folder, self.drill, self.names, self.seed = folder, drill, names, seed
        self.stop = stop or Stop()
        self.control = FaultControl(folder / "control.json")
        self.origin = 0.0
        self.url = ""  # of the driver's exporter
        self.process: psutil.Process  # the driver
        self.held: dict[str, Any] = {}  # between inject and repair
        self.closing: list[Callable[[], None]] = []  # called at the end, the last first

    def until(self, holds: Callable[[], bool], seconds: float, what: str) -> None:
        """Waits for a condition. Raises UserError on a timeout, when the driver ends or when the drill is stopped."""
        limit = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > limit:
                raise UserError(f"drill {self.drill}: {what} did not happen within {seconds:.0f} s")
            if not self.process.is_running() or self.process.status() == psutil.STATUS_ZOMBIE:
                raise UserError(f"drill {self.drill}: the driver ended; see {self.folder / 'driver.log'}")
            self._wait(POLL_SECONDS)

    def at(self, seconds: float) -> None:
        """Waits until so many seconds after the origin. Raises UserError when the drill is stopped before."""
        limit = self.origin + seconds
        while (left := limit - time.time()) > 0:
            self._wait(min(left, POLL_SECONDS))

    def _wait(self, seconds: float) -> None:
        if self.stop.wait(seconds):
            raise UserError(f"drill {self.drill}: {self.stop.reason}")

    def children(self, *words: str) -> list[psutil.Process]:
        """The driver's processes below it whose command line has one of the words: `java`, `pyspark.daemon`."""
        below = descendants(self.process.pid)
        return [child for child in below if any(word in command_line(child) for word in words)]

    def close(self) -> None:
        """Closes what `inject` left open. Never raises."""
        while self.closing:
            try:
                self.closing.pop()()
            except Exception as error:
                print(f"while ending drill {self.drill}: {error}")
