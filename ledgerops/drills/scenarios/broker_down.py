"""F16, broker down: the broker process is killed and comes back after 25 s on the same port with its data."""

from typing import Any

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import at_once
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.kafka_fixture import PLAN, broker_of, open_broker, rows
from ledgerops.drills.harness.target_app import TargetApp


def prepare(injector: Injector) -> dict[str, Any]:
    return open_broker(injector, {"transactions": 5}, load={"transactions": PLAN})


def start(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": rows(app)})


def inject(injector: Injector) -> None:
    broker_of(injector).kafka.kill()


def repair(injector: Injector) -> None:
    broker_of(injector).kafka.start()


DRILL = Drill(
    name="broker-down",
    id="F16",
    kind="fault",
    summary="the only broker is killed and comes back after 25 s",
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
