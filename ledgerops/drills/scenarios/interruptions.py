"""Controls: a restart, a gap in what is observed, and an exporter that is down. Nothing may be found."""

from __future__ import annotations

import json
import subprocess
import sys

from pyspark.errors import PySparkException

import ledgerops
from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.errors import UserError

# H2, planned restart: a query is stopped gracefully, is down for 25 s, and catches up afterwards.
RESTART_PLAN = "{seed: 102, start: now, phases: [{shape: constant, rate: 200}]}"


def start_restart(app: TargetApp) -> None:
    def begin() -> None:
        app.job("dedup_transactions", {"transactions": app.rows(RESTART_PLAN)})

    def turn() -> None:
        query = app.kept["main"].query
        if app.control("away") and query.isActive:
            try:
                query.stop()
            except PySparkException:
                pass  # it takes longer than Spark waits; the next turn asks again
        elif not app.control("away") and not query.isActive:
            begin()

    begin()
    app.each_turn.append(turn)


RESTART = Drill(
    name="restart",
    id="H2",
    kind="control",
    summary="a planned stop of 25 s and the catch-up",
    start=start_restart,
    control={"away": True},
    fault_seconds=25.0,
    recovery_seconds=50.0,
)


# H14, gap in the recording: nothing is recorded for 20 s, and everything is the same afterwards.
GAP_PLAN = """
seed: 114
start: now
phases: [{shape: constant, rate: 200}]
duplicates: {share: 0.01, within: 5s}
"""


def start_gap(app: TargetApp) -> None:
    watched = [True]

    def turn() -> None:
        blind = bool(app.control("blind"))
        if blind and watched[0]:
            app.watch.close()
            watched[0] = False
        elif not blind and not watched[0]:
            app.watch = ledgerops.attach(app.spark, port=0, recording=str(app.folder / "recording"), host_interval=2.0)
            watched[0] = True

    app.job("dedup_transactions", {"transactions": app.rows(GAP_PLAN)})
    app.each_turn.append(turn)


GAP = Drill(
    name="gap",
    id="H14",
    kind="control",
    summary="20 s without observations",
    start=start_gap,
    control={"blind": True},
    fault_seconds=20.0,
    recovery_seconds=40.0,
)


# F21, exporter down: the endpoint closes while the query keeps running. The state is then unknown, not healthy.
#
# The drill counts as a healthy control: the recording continues, and nothing may be found in it. While the endpoint is
# closed, `ledgerops diagnose` must exit with code 2 and say that it could not reach the exporter.
EXPORTER_DEAD_PLAN = "{seed: 21, start: now, phases: [{shape: constant, rate: 200}]}"
UNKNOWN = "nothing is known of its queries"
MAX_CLOSE_SECONDS = 10.0  # for the driver to close its endpoint
MAX_COMMAND_SECONDS = 60.0  # for a command on a busy machine


def start_exporter_dead(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": app.rows(EXPORTER_DEAD_PLAN)})

    def switch() -> None:
        hub = getattr(app.watch, "_hub", None)
        if app.control("close") and hub is not None:
            hub.exporter.close()
            app.each_turn.remove(switch)

    app.each_turn.append(switch)


def inject_exporter_dead(injector: Injector) -> None:
    """Raises UserError unless the command reports that it could not reach the exporter."""
    if ask(injector).returncode != 0:
        raise UserError(f"drill {injector.drill}: the query was not healthy before")
    injector.control.set(close=True)
    injector.until(lambda: ask(injector).returncode != 0, MAX_CLOSE_SECONDS, "the end of the exporter")
    answer = ask(injector)
    (injector.folder / "diagnose.json").write_text(
        json.dumps({"exit": answer.returncode, "output": answer.stdout, "errors": answer.stderr}, indent=1) + "\n",
        "utf-8",
    )
    if answer.returncode != 2 or UNKNOWN not in answer.stderr or answer.stdout:
        raise UserError(f"drill {injector.drill}: ledgerops diagnose ended with {answer.returncode}: {answer.stderr}")


def ask(injector: Injector) -> subprocess.CompletedProcess[str]:
    """Exit code and output of `ledgerops diagnose`. Raises TimeoutExpired after MAX_COMMAND_SECONDS."""
    command = [sys.executable, "-m", "ledgerops", "diagnose", "--from", injector.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=MAX_COMMAND_SECONDS)


EXPORTER_DEAD = Drill(
    name="exporter-dead",
    id="F21",
    kind="control",
    summary="the exporter endpoint is closed while the query is healthy: its state must be reported as unknown",
    start=start_exporter_dead,
    inject=inject_exporter_dead,
)


DRILLS = (RESTART, GAP, EXPORTER_DEAD)
