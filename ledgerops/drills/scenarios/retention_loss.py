"""F17, retention loss: between two batches the topic loses all its records, read or not. The query continues.

Batches are 10 s apart, so some records have not been read yet. `failOnDataLoss` is false, so Spark reports nothing.
"""

from __future__ import annotations

import json
import time

from ledgerops.checkpoint.batch_log import BatchLog
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.kafka_fixture import PLAN, broker_of, open_broker, rows

TOPIC = "transactions"
INTERVAL = 10.0  # seconds
LATEST = 6.0  # seconds after a batch was planned: with a batch of some seconds, this is after its end


def inject(injector: Injector) -> None:
    """Deletes between two batches, and notes how many records were lost by that."""
    log = BatchLog(injector.folder / "work" / "checkpoints" / "main")
    before = log.newest_planned
    injector.until(lambda: log.newest_planned != before, 3 * INTERVAL, "a batch")
    planned = time.time()
    while time.time() < planned + LATEST:
        time.sleep(0.1)
    ends = log.newest.ends
    left = broker_of(injector).delete_read_and_unread(TOPIC)
    lost = sum(max(0, first - ends[TOPIC, str(partition)]) for partition, first in left.items())
    (injector.folder / "lost.json").write_text(json.dumps({"at": time.time(), "records": lost}), "utf-8")


def effect(bundle: Bundle) -> float | None:
    """When records were gone that no batch had read."""
    file = bundle.folder / "lost.json"
    if not file.exists():
        return None
    stored = json.loads(file.read_text("utf-8"))
    return float(stored["at"]) if stored["records"] else None


DRILL = Drill(
    name="retention-loss",
    id="F17",
    summary="the topic loses records that the query has not read",
    prepare=lambda injector: open_broker(injector, {TOPIC: 5}, load={TOPIC: PLAN}),
    start=lambda app: app.job("dedup_transactions", {TOPIC: rows(app, lossy=True)}, trigger=INTERVAL),
    inject=inject,
    effect=effect,
    onset=60.0,
    fault_seconds=50.0,
    recovery_seconds=5.0,
    recovers=False,  # what is lost stays lost
    truth=cause("data-loss", component=("partition=transactions",), remedy="retention"),
)
