"""What can be done to processes and servers: each is entered to begin it, and left to end it."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from ledgerops.drills.harness.delta_table import DeltaTable
from ledgerops.drills.harness.injector import Injector
from ledgerops.servers.process import send

EXECUTOR = "CoarseGrainedExecutorBackend"  # in the command line of an executor
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"


def slow_broker(injector: Injector, seconds: float) -> AbstractContextManager[None]:
    """Each answer of the broker takes longer, by a fifth more or less."""
    return injector.broker.proxy.with_toxics(latency=seconds, jitter=seconds / 5)


@contextmanager
def broker_down(injector: Injector, _: float = 0.0) -> Iterator[None]:
    """The broker is killed, and comes back on the same port with its data."""
    injector.broker.kafka.kill()
    yield
    injector.broker.kafka.start()


@contextmanager
def broker_killed(injector: Injector, _: float = 0.0) -> Iterator[None]:
    """The broker is killed for good."""
    injector.broker.kafka.kill()
    yield


@contextmanager
def executor_killed(injector: Injector, _: float = 0.0) -> Iterator[None]:
    """The newest executor is killed; Spark starts another."""
    send(sorted(injector.children(EXECUTOR), key=lambda process: process.pid)[-1:], signal.SIGKILL)
    yield


@contextmanager
def cores_taken(_: Injector, count: float) -> Iterator[None]:
    """So many processes use a core each."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(round(count))]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


Action = Callable[[Injector, float], AbstractContextManager[None]]


def on_table(change: Callable[[DeltaTable], None]) -> Action:
    """What is done once to the Delta table that the application reads."""

    @contextmanager
    def changed(injector: Injector, _: float = 0.0) -> Iterator[None]:
        change(injector.table)
        yield

    return changed


ACTIONS: Mapping[str, Action] = {
    "broker_latency": slow_broker,
    "kill_broker": broker_killed,
    "kill_executor": executor_killed,
    "burn_cpu": cores_taken,
    "add_column": on_table(DeltaTable.add_column),
    "compact": on_table(DeltaTable.compact),
    "vacuum": on_table(DeltaTable.vacuum),
}
