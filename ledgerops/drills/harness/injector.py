"""What a drill does to an application from outside: its control file, signals to processes, its broker."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import psutil

from ledgerops.common.shutdown import Stop
from ledgerops.drills.harness.broker import Broker
from ledgerops.drills.harness.delta_table import DeltaTable
from ledgerops.drills.harness.fault_control import FaultControl
from ledgerops.drills.harness.processes import command_line, descendants
from ledgerops.drills.harness.proxy import Proxy
from ledgerops.errors import UserError
from ledgerops.servers.process import free_port

POLL_SECONDS = 0.1


class Injector:
    """The tools of the drill with this name, in the process that runs it. What is `opened` is closed at its end."""

    def __init__(self, folder: Path, drill: str, names: Mapping[str, str], opened: ExitStack, stop: Stop) -> None:
        self.folder, self.drill, self.names, self.opened, self.stop = folder, drill, names, opened, stop
        self.outside = FaultControl(folder / "outside.json")
        self.origin = 0.0
        self.url = ""  # of the driver's exporter
        self.ui_port = free_port()  # of Spark's own page
        self.conf: dict[str, str] = {}  # further settings of the Spark session
        self.environ: dict[str, str] = {}  # further variables of the driver
        self.process: psutil.Process  # the driver
        self.servers = ""  # where the application finds the broker; empty without one
        self.broker: Broker
        self.ui: Proxy  # before that page
        self.table: DeltaTable  # that the application reads

    @property
    def running(self) -> bool:
        """Whether the driver is alive."""
        try:
            return self.process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def until(self, holds: Callable[[], bool], seconds: float, what: str) -> None:
        """Waits for a condition. Raises UserError on a timeout, when the driver ends or when the drill is stopped."""
        limit = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > limit:
                raise UserError(f"drill {self.drill}: {what} did not happen within {seconds:.0f} s")
            if not self.running:
                raise UserError(f"drill {self.drill}: the application ended; see {self.folder / 'app.log'}")
            self.wait(POLL_SECONDS)

    def at(self, moment: float) -> None:
        """Waits until a moment (epoch seconds). Raises UserError when the drill is stopped before."""
        while (left := moment - time.time()) > 0:
            self.wait(min(left, POLL_SECONDS))

    def wait(self, seconds: float) -> None:
        """Waits for so long. Raises UserError when the drill is stopped before."""
        if self.stop.wait(seconds):
            raise UserError(f"drill {self.drill}: {self.stop.reason}")

    def children(self, *words: str) -> list[psutil.Process]:
        """The driver's processes below it whose command line has one of the words: `java`, `pyspark.daemon`."""
        below = descendants(self.process.pid)
        return [child for child in below if any(word in command_line(child) for word in words)]
