"""F23, rate limited: `maxOffsetsPerTrigger` allows 800 records in 4 s.

80 records arrive per second, 400 from the onset.

The topic retains 20 s, so the cap eventually puts records at risk of being deleted before they are read. (The broker
checks for expired records only every five minutes, so none are deleted.)
"""

from __future__ import annotations

import json
import time
from typing import Any

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.kafka_fixture import broker_of, open_broker, rows

TOPIC = "transactions"
INTERVAL = 4.0  # seconds
CAP = 800  # offsets a batch
BEFORE, MORE = 80, 320  # records a second: from the start, and in addition from the onset
PLAN = """
seed: {seed}
start: now
phases: [{{shape: constant, rate: {rate}}}]
"""
INTERVALS = 2  # of what comes must have been left


def prepare(injector: Injector) -> dict[str, Any]:
    return open_broker(injector, {TOPIC: 5}, {"retention.ms": "20000"}, {TOPIC: PLAN.format(seed=11, rate=BEFORE)})


def inject(injector: Injector) -> None:
    broker = broker_of(injector)
    broker.produce(TOPIC, PLAN.format(seed=12, rate=MORE))
    (injector.folder / "more.json").write_text(json.dumps({"at": time.time()}), "utf-8")


def repair(injector: Injector) -> None:
    """Both producers end, so that the backlog can be processed."""
    for producer in broker_of(injector).producers.values():
        producer.stop()


def effect(bundle: Bundle) -> float | None:
    """When the cap has left what comes in two intervals, by the rates of the producers and the cap."""
    began = float(json.loads((bundle.folder / "more.json").read_text("utf-8"))["at"])
    arrival = BEFORE + MORE
    at = began + INTERVALS * INTERVAL * arrival / (arrival - CAP / INTERVAL)
    return at if at < bundle.times["repaired"] else None


DRILL = Drill(
    name="rate-limited",
    id="F23",
    summary="a cap of 200 records per second where 400 arrive",
    prepare=prepare,
    start=lambda app: app.job("dedup_transactions", {TOPIC: rows(app, max_rows=CAP)}, trigger=INTERVAL),
    inject=inject,
    repair=repair,
    effect=effect,
    onset=60.0,  # the first batches take 20 s on a busy machine
    fault_seconds=32.0,
    recovery_seconds=60.0,
    truth=cause(
        "rate-limited",
        component=("source",),
        remedy="maxOffsetsPerTrigger",
        may=("input-overload", "falling-behind", "freshness-breach", "retention-risk"),
    ),
)
