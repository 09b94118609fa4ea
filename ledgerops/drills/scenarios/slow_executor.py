"""Straggler: one of two executors is repeatedly stopped and resumed, so that it runs a fifth of the time."""

import signal
import threading

import psutil

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.target_app import TargetApp

PLAN = "{seed: 221, start: now, phases: [{shape: constant, rate: 60}]}"
EXECUTOR = "CoarseGrainedExecutorBackend"
STOPPED, RUNS = 1.2, 0.3  # seconds


def start(app: TargetApp) -> None:
    rows = app.rows(PLAN).repartition(4)
    app.query(slow_udf.waiting(rows, 10))


def inject(injector: Injector) -> None:
    process = max(injector.children(EXECUTOR), key=lambda each: each.pid)
    over = threading.Event()
    injector.held["over"] = over

    def slow() -> None:
        while not over.is_set() and process.is_running():
            try:
                process.send_signal(signal.SIGSTOP)
                over.wait(STOPPED)
                process.send_signal(signal.SIGCONT)
            except psutil.Error:
                return
            over.wait(RUNS)

    thread = threading.Thread(target=slow, name="slow-executor")
    thread.start()
    injector.held["thread"] = thread
    injector.closing.append(lambda: repair(injector))


def repair(injector: Injector) -> None:
    injector.held["over"].set()
    injector.held["thread"].join()


DRILL = Drill(
    name="slow-executor",
    id="P03",
    summary="one of two executors is stopped for most of the time",
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    heavy=True,
    master="local-cluster[2,1,1024]",
    truth=cause("straggler", component=("executor",), remedy="machine", may=LATE_SYMPTOMS),
)
