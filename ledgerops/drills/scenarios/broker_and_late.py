"""X3, slow broker that makes rows late: each broker response takes 300 ms longer, and uploads are throttled.

The query and one of two producers share the slow connection. That producer's rows arrive later and later, while the
other producer's rows advance the watermark past them. The broker is the root cause; late data is the consequence.
"""

from __future__ import annotations

from typing import Any

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.kafka_fixture import broker_of, open_broker, rows

TOPIC = "transactions"
PLAN = """
seed: {seed}
start: now
phases: [{{shape: constant, rate: {rate}}}]
"""
UPLOAD = 3_000  # bytes a second; the producer, whose records are packed when they wait, needs three times as much


def prepare(injector: Injector) -> dict[str, Any]:
    settings = open_broker(injector, {TOPIC: 5}, load={TOPIC: PLAN.format(seed=11, rate=150)})
    broker_of(injector).produce(TOPIC, PLAN.format(seed=12, rate=150), proxied=True)
    return settings


DRILL = Drill(
    name="broker-and-late",
    id="X3",
    kind="combined",
    summary="a slow broker delays the query and makes one producer's rows late",
    prepare=prepare,
    start=lambda app: app.job("dedup_transactions", {TOPIC: rows(app)}, lateness="5 seconds"),
    inject=lambda injector: broker_of(injector).proxy.set(latency=0.3, upload=UPLOAD),
    repair=lambda injector: broker_of(injector).proxy.heal(),
    effect=batches_outlast(2.0),
    recovery_seconds=45.0,
    onset=60.0,  # the first batches take 20 s on a busy machine
    truth=cause(
        "slow-source",
        component=("source",),
        remedy="broker|network",
        may=(*LATE_SYMPTOMS, "late-data", "rows-dropped", "partition-time-spread", "query-stuck"),
    ),
)
