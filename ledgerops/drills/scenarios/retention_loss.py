"""F17, retention loss: halfway between two batches the topic loses all it holds, read or not; the query goes on.

Batches are 10 s apart, so that there is something that was not read yet, and `failOnDataLoss` is false: Spark says
nothing of it.
"""

from __future__ import annotations

import json
import time
from typing import Any

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.kafka_fixture import PLAN, broker_of, open_broker, rows
from ledgerops.drills.harness.target_app import Patient

TOPIC = "transactions"
INTERVAL = 10.0  # seconds
LATEST = 6.0  # seconds after a batch was planned: with a batch of some seconds, this is after its end


def prepare(surgeon: Surgeon) -> dict[str, Any]:
    return open_broker(surgeon, {TOPIC: 5}, load={TOPIC: PLAN})


def start(patient: Patient) -> None:
    patient.job("dedup_transactions", {TOPIC: rows(patient, lossy=True)}, trigger=INTERVAL)


def inject(surgeon: Surgeon) -> None:
    """Deletes between two batches, and notes how many records were lost by that."""
    offsets = surgeon.folder / "work" / "checkpoints" / "main" / "offsets"
    before = _newest(offsets)
    surgeon.until(lambda: _newest(offsets) != before, 3 * INTERVAL, "a batch")
    planned = time.time()
    while time.time() < planned + LATEST:
        time.sleep(0.1)
    ends = json.loads((offsets / str(_newest(offsets))).read_text("utf-8").splitlines()[2])[TOPIC]
    left = broker_of(surgeon).delete_read_and_unread(TOPIC)
    lost = sum(max(0, first - ends[str(partition)]) for partition, first in left.items())
    (surgeon.folder / "lost.json").write_text(json.dumps({"at": time.time(), "records": lost}), "utf-8")


def _newest(offsets: Any) -> int:
    return max((int(file.name) for file in offsets.glob("[0-9]*") if file.name.isdecimal()), default=-1)


def effect(bundle: Bundle) -> float | None:
    """When records were gone that no batch had read."""
    file = bundle.folder / "lost.json"
    if not file.exists():
        return None
    told = json.loads(file.read_text("utf-8"))
    return float(told["at"]) if told["records"] else None


DRILL = Drill(
    name="retention-loss",
    id="F17",
    kind="fault",
    summary="the topic loses records that the query has not read",
    prepare=prepare,
    start=start,
    inject=inject,
    effect=effect,
    onset=60.0,
    fault_seconds=50.0,
    recovery_seconds=5.0,
    recovers=False,  # what is lost stays lost
    truth=Truth(faults=(Fault(rules=("data-loss",), component=("partition=transactions",), remedy="retention"),)),
)
