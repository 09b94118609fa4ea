"""F21, exporter down: the endpoint closes while the query keeps running. The state is then unknown, not healthy.

The drill counts as a healthy control: the recording continues, and nothing may be found in it. While the endpoint is
closed, `ledgerops diagnose` must exit with code 2 and say that it could not reach the exporter.
"""

from __future__ import annotations

import json
import subprocess
import sys

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.errors import UserError

PLAN = "{seed: 21, start: now, phases: [{shape: constant, rate: 200}]}"
UNKNOWN = "nothing is known of its queries"
PATIENCE = 10.0  # seconds for the driver to close its endpoint
LIMIT = 60.0  # seconds for a command on a busy machine


def start(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": app.rows(PLAN)})

    def switch() -> None:
        hub = getattr(app.watch, "_hub", None)
        if app.control("close") and hub is not None:
            hub.exporter.close()
            app.each_turn.remove(switch)

    app.each_turn.append(switch)


def inject(injector: Injector) -> None:
    """Raises UserError unless the command reports that it could not reach the exporter."""
    if ask(injector).returncode != 0:
        raise UserError(f"drill {injector.drill.name}: the query was not healthy before")
    injector.control.set(close=True)
    injector.until(lambda: ask(injector).returncode != 0, PATIENCE, "the end of the exporter")
    answer = ask(injector)
    (injector.folder / "diagnose.json").write_text(
        json.dumps({"exit": answer.returncode, "output": answer.stdout, "errors": answer.stderr}, indent=1) + "\n",
        "utf-8",
    )
    if answer.returncode != 2 or UNKNOWN not in answer.stderr or answer.stdout:
        raise UserError(
            f"drill {injector.drill.name}: ledgerops diagnose ended with {answer.returncode}: {answer.stderr}"
        )


def ask(injector: Injector) -> subprocess.CompletedProcess[str]:
    """Exit code and output of `ledgerops diagnose`. Raises TimeoutExpired after LIMIT seconds."""
    command = [sys.executable, "-m", "ledgerops", "diagnose", "--from", injector.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)


DRILL = Drill(
    name="exporter-dead",
    id="F21",
    kind="control",
    summary="the exporter endpoint is closed while the query is healthy: its state must be reported as unknown",
    start=start,
    inject=inject,
)
