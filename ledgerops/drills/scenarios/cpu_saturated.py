"""R3, CPU saturated: processes that do not belong to the driver use every core of its machine."""

from __future__ import annotations

import subprocess
import sys

import psutil

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Injector

PLAN = "{seed: 26, start: now, phases: [{shape: constant, rate: 500}]}"
BUSY = "import os\nconductor = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"
EACH = 10  # processes for each core: the driver, with two or three running threads, keeps a tenth


def inject(injector: Injector) -> None:
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(EACH * (psutil.cpu_count() or 1))]
    injector.held["busy"] = busy
    injector.closing.append(lambda: end(busy))


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kills the processes and waits for their end."""
    for process in processes:
        process.kill()
        process.wait()


DRILL = Drill(
    name="cpu-saturated",
    id="R3",
    summary="other processes use every core of the machine",
    start=lambda app: app.job("dedup_transactions", {"transactions": app.rows(PLAN)}),
    inject=inject,
    repair=lambda injector: end(injector.held["busy"]),
    effect=batches_outlast(2.0),
    heavy=True,
    truth=cause(
        "cpu-saturated",
        component=("host=other processes",),
        remedy="processes",
        may=(*LATE_SYMPTOMS, "observer-degraded", "checkpoint-slow"),
    ),
)
