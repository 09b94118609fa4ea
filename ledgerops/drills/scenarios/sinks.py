"""Sinks that are slow, stall or hang."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from ledgerops.drills.harness.case import LATE_SYMPTOMS, scripted, steady, stepped
from ledgerops.drills.harness.effects import batches_outlast, nothing_done_for
from ledgerops.drills.harness.injector import Injector
from ledgerops.servers.process import send

SILENCE_SECONDS = 10.0  # without a result, where a reader expects one every two
MASKED_SINK_PLAN = stepped(61, (300, 45), (30, None))


@contextmanager
def hung_worker(injector: Injector) -> Iterator[None]:
    """The Python workers are stopped by a signal in the middle of a batch."""
    stopped = injector.children("pyspark.daemon", "pyspark/daemon")
    send(stopped, signal.SIGSTOP)
    try:
        yield
    finally:
        send(stopped, signal.SIGCONT)


DRILLS = (
    scripted(
        name="slow-sink", id="F03", text="each write takes 3.5 s at a trigger of 2 s",
        start=lambda app: app.job("dedup_transactions", steady(11, 200)),
        fault={"sink": 3.5}, effect=batches_outlast(2.0),
        expected=("slow-sink",), component=("sink",), remedy="write", may=LATE_SYMPTOMS,
    ),
    # the other writes stay fast
    scripted(
        name="flaky-sink", id="F04", text="every fourth write stalls for 3 s",
        start=lambda app: app.query(app.rows(steady(41, 100)), trigger=1.0),
        fault={"stall": 3.0, "every": 4}, effect=batches_outlast(2.0), fault_seconds=60.0, seconds=155.0,
        expected=("intermittent-sink",), component=("sink",), remedy="slow log|timeout", may=LATE_SYMPTOMS,
    ),
    # Spark reports no more progress, and all gauges keep their last values
    scripted(
        name="hung-sink", id="F13", text="the sink blocks forever",
        start=lambda app: app.job("dedup_transactions", steady(131, 100)),
        fault={"block": True}, effect=nothing_done_for(SILENCE_SECONDS), fault_seconds=60.0, seconds=135.0,
        expected=("query-stuck",), component=("query={main}",), remedy="thread dump|restart",
        may=(*LATE_SYMPTOMS, "slow-sink"),  # once it has ended
    ),
    scripted(
        name="hung-worker", id="F13b", text="the Python workers are stopped in the middle of a batch",
        start=lambda app: app.job("dedup_transactions", steady(131, 100)),
        breaks=hung_worker, effect=nothing_done_for(SILENCE_SECONDS), fault_seconds=60.0, seconds=135.0,
        expected=("query-stuck",), component=("query={main}",), remedy="thread dump|restart",
        may=(*LATE_SYMPTOMS, "slow-source"),  # once it has ended
    ),
    # masked: no backlog grows
    scripted(
        name="masked-sink", id="X6", text="each write takes 4 s while the load falls to a tenth",
        start=lambda app: app.query(app.rows(MASKED_SINK_PLAN)),
        fault={"sink": 4.0}, effect=batches_outlast(2.0),
        expected=("slow-sink",), component=("sink",), remedy="write", may=LATE_SYMPTOMS,
    ),
)  # fmt: skip
