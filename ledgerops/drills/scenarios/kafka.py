"""Brokers that are slow or down, topics that lose records, and inputs that are capped or stop."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from ledgerops.checkpoint.batch_log import BatchLog
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import at_once, batches_outlast
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.kafka_fixture import PLAN, broker_of, open_broker, rows
from ledgerops.drills.harness.target_app import TargetApp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPIC = "transactions"
STEADY = "{{seed: {seed}, start: now, phases: [{{shape: constant, rate: {rate}}}]}}"


# F15, slow broker: from the onset, each broker response takes 200 to 400 ms longer.
SLOW_BROKER = Drill(
    name="slow-broker",
    id="F15",
    summary="each broker response takes 0.3 s longer",
    prepare=lambda injector: open_broker(injector, {TOPIC: 5}, load={TOPIC: PLAN}),
    start=lambda app: app.job("dedup_transactions", {TOPIC: rows(app)}),
    inject=lambda injector: broker_of(injector).proxy.set(latency=0.3, jitter=0.1),
    repair=lambda injector: broker_of(injector).proxy.heal(),
    effect=batches_outlast(2.0),
    onset_seconds=60.0,  # the first batches take 20 s on a busy machine
    truth=cause("slow-source", component=("source",), remedy="broker|network", may=LATE_SYMPTOMS),
)


# F16, broker down: the broker process is killed and comes back after 25 s on the same port with its data.
BROKER_DOWN = Drill(
    name="broker-down",
    id="F16",
    summary="the only broker is killed and comes back after 25 s",
    prepare=lambda injector: open_broker(injector, {TOPIC: 5}, load={TOPIC: PLAN}),
    start=lambda app: app.job("dedup_transactions", {TOPIC: rows(app)}),
    inject=lambda injector: broker_of(injector).kafka.kill(),
    repair=lambda injector: broker_of(injector).kafka.start(),
    effect=at_once,
    fault_seconds=25.0,
    recovery_seconds=50.0,
    truth=cause(
        "source-unreachable", component=("source",), remedy="broker", may=(*LATE_SYMPTOMS, "query-stuck", "slow-source")
    ),
)


# F17, retention loss: between two batches the topic loses all its records, read or not. The query continues.
#
# Batches are 10 s apart, so some records have not been read yet. `failOnDataLoss` is false, so Spark reports nothing.
RETENTION_LOSS_TRIGGER_SECONDS = 10.0
MAX_BATCH_SECONDS = 6.0  # from the plan of a batch to a moment at which it is surely done


def inject_retention_loss(injector: Injector) -> None:
    """Deletes between two batches, and notes how many records were lost by that."""
    log = BatchLog(injector.folder / "work" / "checkpoints" / "main")
    before = log.newest_planned
    injector.until(lambda: log.newest_planned != before, 3 * RETENTION_LOSS_TRIGGER_SECONDS, "a batch")
    planned = time.time()
    while time.time() < planned + MAX_BATCH_SECONDS:
        time.sleep(0.1)
    ends = log.newest.ends
    left = broker_of(injector).delete_read_and_unread(TOPIC)
    lost = sum(max(0, first - ends[TOPIC, str(partition)]) for partition, first in left.items())
    (injector.folder / "lost.json").write_text(json.dumps({"at": time.time(), "records": lost}), "utf-8")


def effect_retention_loss(bundle: Bundle) -> float | None:
    """When records were gone that no batch had read."""
    file = bundle.folder / "lost.json"
    if not file.exists():
        return None
    stored = json.loads(file.read_text("utf-8"))
    return float(stored["at"]) if stored["records"] else None


RETENTION_LOSS = Drill(
    name="retention-loss",
    id="F17",
    summary="the topic loses records that the query has not read",
    prepare=lambda injector: open_broker(injector, {TOPIC: 5}, load={TOPIC: PLAN}),
    start=lambda app: app.job(
        "dedup_transactions", {TOPIC: rows(app, lossy=True)}, trigger=RETENTION_LOSS_TRIGGER_SECONDS
    ),
    inject=inject_retention_loss,
    effect=effect_retention_loss,
    onset_seconds=60.0,
    fault_seconds=50.0,
    recovery_seconds=5.0,
    recovers=False,  # what is lost stays lost
    truth=cause("data-loss", component=("partition=transactions",), remedy="retention"),
)


# F23, rate limited: `maxOffsetsPerTrigger` allows 800 records in 4 s. 80 records arrive per second, 400 from the onset.
#
# The topic retains 20 s, so the cap eventually puts records at risk of being deleted before they are read. (The broker
# checks for expired records only every five minutes, so none are deleted.)
RATE_LIMITED_TRIGGER_SECONDS = 4.0
RATE_LIMITED_CAP = 800  # offsets a batch
RATE_BEFORE, RATE_ADDED = 80, 320  # records a second: from the start, and in addition from the onset
MIN_BACKLOG_INTERVALS = 2  # the backlog must be what arrives in so many


def prepare_rate_limited(injector: Injector) -> dict[str, Any]:
    return open_broker(
        injector, {TOPIC: 5}, {"retention.ms": "20000"}, {TOPIC: STEADY.format(seed=11, rate=RATE_BEFORE)}
    )


def inject_rate_limited(injector: Injector) -> None:
    broker = broker_of(injector)
    broker.produce(TOPIC, STEADY.format(seed=12, rate=RATE_ADDED))
    (injector.folder / "more.json").write_text(json.dumps({"at": time.time()}), "utf-8")


def repair_rate_limited(injector: Injector) -> None:
    """Both producers end, so that the backlog can be processed."""
    for producer in broker_of(injector).producers.values():
        producer.stop()


def effect_rate_limited(bundle: Bundle) -> float | None:
    """When the backlog is what arrives in two intervals, by the rates of the producers and the cap."""
    began = float(json.loads((bundle.folder / "more.json").read_text("utf-8"))["at"])
    arrival = RATE_BEFORE + RATE_ADDED
    at = began + MIN_BACKLOG_INTERVALS * RATE_LIMITED_TRIGGER_SECONDS * arrival / (
        arrival - RATE_LIMITED_CAP / RATE_LIMITED_TRIGGER_SECONDS
    )
    return at if at < bundle.times["repaired"] else None


RATE_LIMITED = Drill(
    name="rate-limited",
    id="F23",
    summary="a cap of 200 records per second where 400 arrive",
    prepare=prepare_rate_limited,
    start=lambda app: app.job(
        "dedup_transactions", {TOPIC: rows(app, max_rows=RATE_LIMITED_CAP)}, trigger=RATE_LIMITED_TRIGGER_SECONDS
    ),
    inject=inject_rate_limited,
    repair=repair_rate_limited,
    effect=effect_rate_limited,
    onset_seconds=60.0,  # the first batches take 20 s on a busy machine
    fault_seconds=32.0,
    recovery_seconds=60.0,
    truth=cause(
        "rate-limited",
        component=("source",),
        remedy="maxOffsetsPerTrigger",
        may=("input-overload", "falling-behind", "freshness-breach", "retention-risk"),
    ),
)


# F24, input stopped: a query reads two topics. One stops receiving records while the other continues.
#
# The pause must be longer than a restart of a producer takes, so this drill is longer than most.
SILENCE_SECONDS = 20.0  # the effect, for the input never pauses for one
INPUT_STOPPED_PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 60}]
partitions: {count: 2}
"""


def prepare_input_stopped(injector: Injector) -> dict[str, Any]:
    topics = {"transactions.debits": 2, "transactions.credits": 2}
    settings = open_broker(injector, topics)
    broker = broker_of(injector)
    broker.produce("transactions.debits", INPUT_STOPPED_PLAN, "debits")
    broker.produce("transactions.credits", INPUT_STOPPED_PLAN, "credits")
    return settings


def start_input_stopped(app: TargetApp) -> None:
    def both(debits: DataFrame, credits: DataFrame) -> DataFrame:
        return debits.unionByName(credits, allowMissingColumns=True)

    app.query(both(rows(app, "debits"), rows(app, "credits")))


def repair_input_stopped(injector: Injector) -> None:
    broker = broker_of(injector)
    del broker.producers["transactions.credits"]
    broker.produce("transactions.credits", INPUT_STOPPED_PLAN, "credits")


def effect_input_stopped(bundle: Bundle) -> float | None:
    """When the fault takes effect, in epoch seconds: SILENCE_SECONDS after the injection."""
    return bundle.times["injected"] + SILENCE_SECONDS


INPUT_STOPPED = Drill(
    name="input-stopped",
    id="F24",
    summary="one of two inputs stops while the other continues",
    prepare=prepare_input_stopped,
    start=start_input_stopped,
    inject=lambda injector: broker_of(injector).producers["transactions.credits"].stop(),
    repair=repair_input_stopped,
    effect=effect_input_stopped,
    onset_seconds=150.0,  # the topic must have been seen to flow for two minutes
    fault_seconds=85.0,
    deadline_seconds=60.0,
    recovery_seconds=20.0,
    truth=cause("input-stopped", component=("source=transactions[.]credits",), remedy="producer"),
)


# X3, slow broker that makes rows late: each broker response takes 300 ms longer, and uploads are throttled.
#
# The query and one of two producers share the slow connection. That producer's rows arrive later and later, while the
# other producer's rows advance the watermark past them. The broker is the root cause; late data is the consequence.
# a third of what the producer needs, whose waiting records are sent compressed
UPLOAD_BYTES_PER_SECOND = 3_000


def prepare_broker_and_late(injector: Injector) -> dict[str, Any]:
    settings = open_broker(injector, {TOPIC: 5}, load={TOPIC: STEADY.format(seed=11, rate=150)})
    broker_of(injector).produce(TOPIC, STEADY.format(seed=12, rate=150), proxied=True)
    return settings


BROKER_AND_LATE = Drill(
    name="broker-and-late",
    id="X3",
    kind="combined",
    summary="a slow broker delays the query and makes one producer's rows late",
    prepare=prepare_broker_and_late,
    start=lambda app: app.job("dedup_transactions", {TOPIC: rows(app)}, lateness="5 seconds"),
    inject=lambda injector: broker_of(injector).proxy.set(latency=0.3, upload=UPLOAD_BYTES_PER_SECOND),
    repair=lambda injector: broker_of(injector).proxy.heal(),
    effect=batches_outlast(2.0),
    recovery_seconds=45.0,
    onset_seconds=60.0,  # the first batches take 20 s on a busy machine
    truth=cause(
        "slow-source",
        component=("source",),
        remedy="broker|network",
        may=(*LATE_SYMPTOMS, "late-data", "rows-dropped", "partition-time-spread", "query-stuck"),
    ),
)


DRILLS = (SLOW_BROKER, BROKER_DOWN, RETENTION_LOSS, RATE_LIMITED, INPUT_STOPPED, BROKER_AND_LATE)
