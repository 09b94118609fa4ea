"""Straggler: of two executors one is stopped and goes on again, so that it runs a quarter of the time."""

import signal
import threading

import psutil

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 221
start: now
phases: [{shape: constant, rate: 60}]
"""
EXECUTOR = "CoarseGrainedExecutorBackend"
STOPPED, RUNS = 1.2, 0.3  # seconds


def start(patient: Patient) -> None:
    rows = patient.rows(PLAN).repartition(4)
    patient.query(slow_udf.waiting(rows, 10))


def inject(surgeon: Surgeon) -> None:
    process = max(surgeon.children(EXECUTOR), key=lambda each: each.pid)
    over = threading.Event()
    surgeon.held["over"] = over

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
    surgeon.held["thread"] = thread
    surgeon.closing.append(lambda: repair(surgeon))


def repair(surgeon: Surgeon) -> None:
    surgeon.held["over"].set()
    surgeon.held["thread"].join()


DRILL = Drill(
    name="slow-executor",
    id="P03",
    kind="fault",
    summary="one of two executors is stopped for most of the time",
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    heavy=True,
    master="local-cluster[2,1,1024]",
    truth=Truth(
        faults=(Fault(rules=("straggler",), component=("executor",), remedy="machine"),),
        may=LATE,
    ),
)
