"""F23, rate limited: `maxOffsetsPerTrigger` allows 800 records in 4 s; from the onset 400 a second come, before it 80.

The topic keeps 20 s, so that by and by the cap brings rows into danger of being deleted unread. (The broker looks for
what is to be deleted every five minutes only, so nothing is.)
"""

from __future__ import annotations

import json
import time
from typing import Any

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.kafka_fixture import broker_of, open_broker, rows
from ledgerops.drills.harness.target_app import Patient

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


def prepare(surgeon: Surgeon) -> dict[str, Any]:
    return open_broker(surgeon, {TOPIC: 5}, {"retention.ms": "20000"}, {TOPIC: PLAN.format(seed=11, rate=BEFORE)})


def start(patient: Patient) -> None:
    patient.job("dedup_transactions", {TOPIC: rows(patient, max_rows=CAP)}, trigger=INTERVAL)


def inject(surgeon: Surgeon) -> None:
    broker = broker_of(surgeon)
    broker.produce(TOPIC, PLAN.format(seed=12, rate=MORE))
    (surgeon.folder / "more.json").write_text(json.dumps({"at": time.time()}), "utf-8")


def repair(surgeon: Surgeon) -> None:
    """The additional producer ends, and so does the one before: what is left can be worked off."""
    for producer in broker_of(surgeon).producers.values():
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
    kind="fault",
    summary="a cap of 200 records a second where 400 come",
    prepare=prepare,
    start=start,
    inject=inject,
    repair=repair,
    effect=effect,
    onset=60.0,  # a busy machine takes 20 s for the first batches
    fault_seconds=32.0,
    recovery_seconds=60.0,
    truth=Truth(
        faults=(Fault(rules=("rate-limited",), component=("source",), remedy="maxOffsetsPerTrigger"),),
        may=("input-overload", "falling-behind", "freshness-breach", "retention-risk"),
    ),
)
