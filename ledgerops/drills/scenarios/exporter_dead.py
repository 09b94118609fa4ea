"""F21, exporter dead: the endpoint is closed and the query goes on. Nothing is known then, which is not 'healthy'.

The drill is a control: the recording goes on and nothing may be found in it. What must be said is asked for while the
endpoint is closed, as somebody at a terminal would: `ledgerops diagnose` must end with 2 and say what it does not know.
"""

from __future__ import annotations

import json
import subprocess
import sys

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient
from ledgerops.errors import UserError

PLAN = """
seed: 21
start: now
phases: [{shape: constant, rate: 200}]
"""
UNKNOWN = "nothing is known of its queries"
PATIENCE = 10.0  # seconds for the driver to close its endpoint
LIMIT = 60.0  # seconds for a command on a busy machine


def start(patient: Patient) -> None:
    patient.job("dedup_transactions", {"transactions": patient.rows(PLAN)})

    def obey() -> None:
        if patient.chaos("close") and patient.watch._hub is not None:
            patient.watch._hub.exporter.close()
            patient.each_turn.remove(obey)

    patient.each_turn.append(obey)


def inject(surgeon: Surgeon) -> None:
    """Raises UserError when the command says anything but that it does not know."""
    if ask(surgeon).returncode != 0:
        raise UserError(f"drill {surgeon.drill.name}: the query was not healthy before")
    surgeon.chaos.set(close=True)
    surgeon.until(lambda: ask(surgeon).returncode != 0, PATIENCE, "the end of the exporter")
    said = ask(surgeon)
    (surgeon.folder / "diagnose.json").write_text(
        json.dumps({"exit": said.returncode, "output": said.stdout, "errors": said.stderr}, indent=1) + "\n", "utf-8"
    )
    if said.returncode != 2 or UNKNOWN not in said.stderr or said.stdout:
        raise UserError(f"drill {surgeon.drill.name}: ledgerops diagnose ended with {said.returncode}: {said.stderr}")


def ask(surgeon: Surgeon) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ledgerops", "diagnose", "--from", surgeon.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)


DRILL = Drill(
    name="exporter-dead",
    id="F21",
    kind="control",
    summary="the exporter's endpoint is closed and the query is well: nothing is known, and that is said",
    start=start,
    inject=inject,
)
