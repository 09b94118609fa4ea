"""F15, slow broker: from the onset each answer of the broker takes 300 ms longer, give or take 100."""

from typing import Any

from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.kafka_fixture import PLAN, broker_of, open_broker, rows
from ledgerops.drills.harness.target_app import Patient


def prepare(surgeon: Surgeon) -> dict[str, Any]:
    return open_broker(surgeon, {"transactions": 5}, load={"transactions": PLAN})


def start(patient: Patient) -> None:
    patient.job("dedup_transactions", {"transactions": rows(patient)})


def inject(surgeon: Surgeon) -> None:
    broker_of(surgeon).proxy.set(latency=0.3, jitter=0.1)


def repair(surgeon: Surgeon) -> None:
    broker_of(surgeon).proxy.heal()


DRILL = Drill(
    name="slow-broker",
    id="F15",
    kind="fault",
    summary="each answer of the broker takes 0.3 s longer",
    prepare=prepare,
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    onset=60.0,  # a busy machine takes 20 s for the first batches
    truth=Truth(
        faults=(Fault(rules=("slow-source",), component=("source",), remedy="broker|network"),),
        may=LATE,
    ),
)
