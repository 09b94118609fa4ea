"""F24, input stopped: a query reads two topics. One stops receiving records while the other continues.

The pause must be longer than a restart of a producer takes, so this drill is longer than most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.kafka_fixture import broker_of, open_broker, rows
from ledgerops.drills.harness.target_app import TargetApp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SILENCE = 20.0  # seconds: the effect, for the input never pauses for one
PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 60}]
partitions: {count: 2}
"""


def prepare(injector: Injector) -> dict[str, Any]:
    topics = {"transactions.debits": 2, "transactions.credits": 2}
    settings = open_broker(injector, topics)
    broker = broker_of(injector)
    broker.produce("transactions.debits", PLAN, "debits")
    broker.produce("transactions.credits", PLAN, "credits")
    return settings


def start(app: TargetApp) -> None:
    def both(debits: DataFrame, credits: DataFrame) -> DataFrame:
        return debits.unionByName(credits, allowMissingColumns=True)

    app.query(both(rows(app, "debits"), rows(app, "credits")))


def repair(injector: Injector) -> None:
    broker = broker_of(injector)
    del broker.producers["transactions.credits"]
    broker.produce("transactions.credits", PLAN, "credits")


def effect(bundle: Bundle) -> float | None:
    """When the fault takes effect, in epoch seconds: SILENCE seconds after the injection."""
    return bundle.times["injected"] + SILENCE


DRILL = Drill(
    name="input-stopped",
    id="F24",
    summary="one of two inputs stops while the other continues",
    prepare=prepare,
    start=start,
    inject=lambda injector: broker_of(injector).producers["transactions.credits"].stop(),
    repair=repair,
    effect=effect,
    onset=150.0,  # the topic must have been seen to flow for two minutes
    fault_seconds=85.0,
    deadline=60.0,
    recovery_seconds=20.0,
    truth=cause("input-stopped", component=("source=transactions[.]credits",), remedy="producer"),
)
