"""F21b, observer degraded: Spark's UI, from which tasks and executors are read, answers no more; the query is well."""

from __future__ import annotations

from typing import Any

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import at_once
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.proxy import Proxy
from ledgerops.drills.harness.target_app import Patient
from ledgerops.servers.process import free_port

PLAN = """
seed: 27
start: now
phases: [{shape: constant, rate: 200}]
"""


def prepare(surgeon: Surgeon) -> dict[str, Any]:
    target = free_port()
    proxy = Proxy(target)
    proxy.__enter__()
    surgeon.closing.append(lambda: proxy.__exit__())
    surgeon.held["proxy"] = proxy
    return {
        "conf": {"spark.ui.port": str(target)},
        "watch": {"ui_url": f"http://127.0.0.1:{proxy.port}"},
    }


def start(patient: Patient) -> None:
    patient.job("dedup_transactions", {"transactions": patient.rows(PLAN)})


def inject(surgeon: Surgeon) -> None:
    surgeon.held["proxy"].set(down=True)


def repair(surgeon: Surgeon) -> None:
    surgeon.held["proxy"].heal()


DRILL = Drill(
    name="observer-degraded",
    id="F21b",
    kind="fault",
    summary="Spark's UI answers no more, and the query is well",
    prepare=prepare,
    start=start,
    inject=inject,
    repair=repair,
    effect=at_once,
    recovery_seconds=45.0,  # a collector that failed rests for a while before it is trusted again
    truth=Truth(
        faults=(Fault(rules=("observer-degraded",), component=("observer",), remedy="UI"),),
    ),
)
