"""F15, slow broker: from the onset, each broker response takes 200 to 400 ms longer."""

from typing import Any

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.kafka_fixture import PLAN, broker_of, open_broker, rows
from ledgerops.drills.harness.target_app import TargetApp


def prepare(injector: Injector) -> dict[str, Any]:
    return open_broker(injector, {"transactions": 5}, load={"transactions": PLAN})


def start(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": rows(app)})


def inject(injector: Injector) -> None:
    broker_of(injector).proxy.set(latency=0.3, jitter=0.1)


def repair(injector: Injector) -> None:
    broker_of(injector).proxy.heal()


DRILL = Drill(
    name="slow-broker",
    id="F15",
    kind="fault",
    summary="each broker response takes 0.3 s longer",
    prepare=prepare,
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    onset=60.0,  # the first batches take 20 s on a busy machine
    truth=Truth(
        faults=(Fault(rules=("slow-source",), component=("source",), remedy="broker|network"),),
        may=LATE_SYMPTOMS,
    ),
)
