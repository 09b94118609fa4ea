"""Sinks that are slow, stall or hang."""

from __future__ import annotations

import signal

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast, nothing_done_for
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.processes import send
from ledgerops.drills.harness.target_app import TargetApp

# F03, slow sink: from the onset, each write takes 3.5 s. The trigger interval is 2 s.
SLOW_SINK_PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 200}]}"
SLOW_SINK = Drill(
    name="slow-sink",
    id="F03",
    summary="each write takes 3.5 s at a trigger of 2 s",
    start=lambda app: app.job("dedup_transactions", {"transactions": app.rows(SLOW_SINK_PLAN)}),
    control={"sleep": 3.5},
    effect=batches_outlast(2.0),
    truth=cause("slow-sink", component=("sink",), remedy="write", may=LATE_SYMPTOMS),
)


# F04, flaky sink: from the onset, every fourth write stalls for 3 s. The others stay fast.
FLAKY_SINK_PLAN = "{seed: 41, start: now, phases: [{shape: constant, rate: 100}]}"
FLAKY_SINK = Drill(
    name="flaky-sink",
    id="F04",
    summary="every fourth write stalls for 3 s",
    start=lambda app: app.query(app.rows(FLAKY_SINK_PLAN), trigger=1.0),
    control={"stall": 3.0, "every": 4},
    effect=batches_outlast(2.0),
    fault_seconds=60.0,
    recovery_seconds=50.0,
    truth=cause("intermittent-sink", component=("sink",), remedy="slow log|timeout", may=LATE_SYMPTOMS),
)


# F13, hung query: from the onset, the sink blocks forever.
#
# Spark reports no more progress, and all gauges keep their last values.
HUNG_SINK_PLAN = "{seed: 131, start: now, phases: [{shape: constant, rate: 100}]}"
SILENCE_SECONDS = 10.0  # without a result, where a reader expects one every two


def start_hung_sink(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": app.rows(HUNG_SINK_PLAN)})


HUNG_SINK = Drill(
    name="hung-sink",
    id="F13",
    summary="the sink blocks forever",
    start=start_hung_sink,
    control={"block": True},
    effect=nothing_done_for(SILENCE_SECONDS),
    fault_seconds=60.0,
    recovery_seconds=30.0,
    truth=cause("query-stuck", component=("query={main}",), remedy="thread dump|restart", may=LATE_SYMPTOMS),
)


# F13b, hung query: from the onset, the Python workers are stopped by a signal in the middle of a batch.
WORKERS = ("pyspark.daemon", "pyspark/daemon")


def inject_hung_worker(injector: Injector) -> None:
    injector.held["stopped"] = injector.children(*WORKERS)
    injector.closing.append(lambda: repair_hung_worker(injector))
    send(injector.held["stopped"], signal.SIGSTOP)


def repair_hung_worker(injector: Injector) -> None:
    send(injector.held["stopped"], signal.SIGCONT)


HUNG_WORKER = Drill(
    name="hung-worker",
    id="F13b",
    summary="the Python workers are stopped in the middle of a batch",
    start=start_hung_sink,
    inject=inject_hung_worker,
    repair=repair_hung_worker,
    effect=nothing_done_for(SILENCE_SECONDS),
    fault_seconds=60.0,
    recovery_seconds=30.0,
    truth=cause("query-stuck", component=("query={main}",), remedy="thread dump|restart", may=LATE_SYMPTOMS),
)


# X6, masked fault: the sink becomes slow just when the load falls to a tenth, so that no backlog grows.
MASKED_SINK_PLAN = """
seed: 61
start: now
phases:
  - {shape: constant, rate: 300, duration: 45s}
  - {shape: constant, rate: 30}
"""
MASKED_SINK = Drill(
    name="masked-sink",
    id="X6",
    kind="combined",
    summary="each write takes 4 s while the load falls to a tenth",
    start=lambda app: app.query(app.rows(MASKED_SINK_PLAN)),
    control={"sleep": 4.0},
    effect=batches_outlast(2.0),
    truth=cause("slow-sink", component=("sink",), remedy="write", may=LATE_SYMPTOMS),
)


DRILLS = (SLOW_SINK, FLAKY_SINK, HUNG_SINK, HUNG_WORKER, MASKED_SINK)
