"""F13, hung query: from the onset, the Python workers are stopped by a signal in the middle of a batch."""

import signal

import psutil

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import nothing_done_for
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.scenarios.hung_sink import SILENCE, start

WORKERS = ("pyspark.daemon", "pyspark/daemon")


def inject(injector: Injector) -> None:
    injector.held["stopped"] = injector.children(*WORKERS)
    injector.closing.append(lambda: repair(injector))
    _signal(injector, signal.SIGSTOP)


def repair(injector: Injector) -> None:
    _signal(injector, signal.SIGCONT)


def _signal(injector: Injector, number: signal.Signals) -> None:
    for process in injector.held["stopped"]:
        try:
            process.send_signal(number)
        except psutil.Error:
            pass  # a worker may end by itself


DRILL = Drill(
    name="hung-worker",
    id="F13b",
    summary="the Python workers are stopped in the middle of a batch",
    start=start,
    inject=inject,
    repair=repair,
    effect=nothing_done_for(SILENCE),
    fault_seconds=60.0,
    recovery_seconds=30.0,
    truth=cause("query-stuck", component=("query={main}",), remedy="thread dump|restart", may=LATE_SYMPTOMS),
)
