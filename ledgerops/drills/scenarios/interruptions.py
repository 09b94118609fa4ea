"""Controls: a restart, a gap in what is observed, and an exporter that is down. Nothing may be found."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

import ledgerops
from ledgerops.drills.applications.outside import now
from ledgerops.drills.harness.case import control, steady
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.errors import UserError


def start_restart(app: TargetApp) -> None:
    def turn() -> None:
        query = app.kept["main"].query
        if now("away") and query.isActive:
            try:
                query.stop()
            except PySparkException:
                pass  # it takes longer than Spark waits; the next turn asks again
        elif not now("away") and not query.isActive:
            app.job("dedup_transactions", steady(102, 200))

    app.job("dedup_transactions", steady(102, 200))
    app.each_turn.append(turn)


def start_gap(app: TargetApp) -> None:
    watches = [ledgerops.attach(app.spark)]

    def turn() -> None:
        blind = bool(now("blind"))
        if blind and watches:
            watches.pop().close()
        elif not blind and not watches:
            watches.append(ledgerops.attach(app.spark))

    app.job("dedup_transactions", steady(114, 200, "duplicates: {share: 0.01, within: 5s}"))
    app.each_turn.append(turn)


UNKNOWN = "nothing is known of its queries"
MAX_CLOSE_SECONDS = 10.0  # for the driver to close its endpoint
MAX_COMMAND_SECONDS = 60.0  # for a command on a busy machine


def start_exporter_dead(app: TargetApp) -> None:
    def switch() -> None:
        hub = getattr(ledgerops.attach(app.spark), "_hub", None)
        if now("close") and hub is not None:
            hub.exporter.close()
            app.each_turn.remove(switch)

    app.job("dedup_transactions", steady(21, 200))
    app.each_turn.append(switch)


@contextmanager
def exporter_dead(injector: Injector) -> Iterator[None]:
    """Raises UserError unless the command reports that it could not reach the exporter."""
    if ask(injector).returncode != 0:
        raise UserError(f"drill {injector.drill}: the query was not healthy before")
    injector.outside.set(close=True)
    injector.until(lambda: ask(injector).returncode != 0, MAX_CLOSE_SECONDS, "the end of the exporter")
    answer = ask(injector)
    if answer.returncode != 2 or UNKNOWN not in answer.stderr or answer.stdout:
        raise UserError(f"drill {injector.drill}: ledgerops diagnose ended with {answer.returncode}: {answer.stderr}")
    yield


def ask(injector: Injector) -> subprocess.CompletedProcess[str]:
    """Exit code and output of `ledgerops diagnose`. Raises TimeoutExpired after MAX_COMMAND_SECONDS."""
    command = [sys.executable, "-m", "ledgerops", "diagnose", "--from", injector.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=MAX_COMMAND_SECONDS)


DRILLS = (
    control(
        name="restart", id="H2", text="a planned stop of 25 s and the catch-up",
        start=start_restart, fault={"away": True}, fault_seconds=25.0,
    ),
    control(
        name="gap", id="H14", text="20 s without observations",
        start=start_gap, fault={"blind": True}, fault_seconds=20.0, seconds=105.0,
    ),
    # the recording continues, and nothing may be found in it; the state of the query is unknown, not healthy
    control(
        name="exporter-dead", id="F21",
        text="the exporter endpoint is closed while the query is healthy: its state must be reported as unknown",
        start=start_exporter_dead, breaks=exporter_dead,
    ),
)  # fmt: skip
