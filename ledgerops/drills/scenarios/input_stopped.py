"""F24, input stopped: of two topics that a query reads together one falls silent, while the other goes on.

A pause has to be longer than any that a producer's restart makes, so the drill takes longer than most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.kafka_fixture import broker_of, open_broker, rows
from ledgerops.drills.harness.target_app import Patient

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SILENCE = 20.0  # seconds: the effect, for the input never pauses for one
PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 60}]
partitions: {count: 2}
"""


def prepare(surgeon: Surgeon) -> dict[str, Any]:
    topics = {"transactions.debits": 2, "transactions.credits": 2}
    settings = open_broker(surgeon, topics)
    broker = broker_of(surgeon)
    broker.produce("transactions.debits", PLAN, "debits")
    broker.produce("transactions.credits", PLAN, "credits")
    return settings


def start(patient: Patient) -> None:
    def both(debits: DataFrame, credits: DataFrame) -> DataFrame:
        return debits.unionByName(credits, allowMissingColumns=True)

    patient.query(both(rows(patient, "debits"), rows(patient, "credits")))


def inject(surgeon: Surgeon) -> None:
    broker_of(surgeon).producers["transactions.credits"].stop()


def repair(surgeon: Surgeon) -> None:
    broker = broker_of(surgeon)
    del broker.producers["transactions.credits"]
    broker.produce("transactions.credits", PLAN, "credits")


def effect(bundle: Bundle) -> float | None:
    return bundle.times["injected"] + SILENCE


DRILL = Drill(
    name="input-stopped",
    id="F24",
    kind="fault",
    summary="one of two inputs falls silent while the other goes on",
    prepare=prepare,
    start=start,
    inject=inject,
    repair=repair,
    effect=effect,
    onset=150.0,  # the topic must have been seen to flow for two minutes
    fault_seconds=85.0,
    deadline=60.0,
    recovery_seconds=20.0,
    truth=Truth(
        faults=(Fault(rules=("input-stopped",), component=("source=transactions[.]credits",), remedy="producer"),),
    ),
)
