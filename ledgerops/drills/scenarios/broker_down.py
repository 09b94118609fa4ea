"""F16, broker down: the broker's process is killed, and is back 25 s later on the same port and data."""

from typing import Any

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import at_once
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.kafka_fixture import PLAN, broker_of, open_broker, rows
from ledgerops.drills.harness.target_app import Patient


def prepare(surgeon: Surgeon) -> dict[str, Any]:
    return open_broker(surgeon, {"transactions": 5}, load={"transactions": PLAN})


def start(patient: Patient) -> None:
    patient.job("dedup_transactions", {"transactions": rows(patient)})


def inject(surgeon: Surgeon) -> None:
    broker_of(surgeon).kafka.kill()


def repair(surgeon: Surgeon) -> None:
    broker_of(surgeon).kafka.start()


DRILL = Drill(
    name="broker-down",
    id="F16",
    kind="fault",
    summary="the only broker is killed, and back after 25 s",
    prepare=prepare,
    start=start,
    inject=inject,
    repair=repair,
    effect=at_once,
    fault_seconds=25.0,
    recovery_seconds=50.0,
    truth=Truth(
        faults=(Fault(rules=("source-unreachable",), component=("source",), remedy="broker"),),
        may=("query-stuck", "trigger-overrun", "falling-behind", "freshness-breach"),
    ),
)
