"""X3, broker latency and late data made by it: each answer of the broker takes 300 ms longer, and uploads are slow.

The query waits for the broker, and so does one of two producers: what that one sends arrives later and later, and the
rows of the other move the watermark past it. The broker is the root, lateness its consequence.
"""

from __future__ import annotations

from typing import Any

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.kafka_fixture import broker_of, open_broker, rows
from ledgerops.drills.harness.target_app import Patient

TOPIC = "transactions"
PLAN = """
seed: {seed}
start: now
phases: [{{shape: constant, rate: {rate}}}]
"""
UPLOAD = 3_000  # bytes a second; the producer, whose records are packed when they wait, needs three times as much


def prepare(surgeon: Surgeon) -> dict[str, Any]:
    settings = open_broker(surgeon, {TOPIC: 5}, load={TOPIC: PLAN.format(seed=11, rate=150)})
    broker_of(surgeon).produce(TOPIC, PLAN.format(seed=12, rate=150), proxied=True)
    return settings


def start(patient: Patient) -> None:
    patient.job("dedup_transactions", {TOPIC: rows(patient)}, lateness="5 seconds")


def inject(surgeon: Surgeon) -> None:
    broker_of(surgeon).proxy.set(latency=0.3, upload=UPLOAD)


def repair(surgeon: Surgeon) -> None:
    broker_of(surgeon).proxy.heal()


DRILL = Drill(
    name="broker-and-late",
    id="X3",
    kind="combined",
    summary="a slow broker makes the query wait, and one producer's rows late",
    prepare=prepare,
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    recovery_seconds=45.0,
    onset=60.0,  # a busy machine takes 20 s for the first batches
    truth=Truth(
        faults=(Fault(rules=("slow-source",), component=("source",), remedy="broker|network"),),
        may=(
            "late-data", "rows-dropped", "partition-time-spread",
            "query-stuck", "trigger-overrun", "falling-behind", "freshness-breach",
        ),
    ),
)  # fmt: skip
