"""Brokers that are slow or down, topics that lose records, and inputs that are capped or stop."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ledgerops.checkpoint.batch_log import BatchLog
from ledgerops.drills.harness.actions import broker_down
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import LATE_SYMPTOMS, TWO_PARTITIONS, scripted, steady
from ledgerops.drills.harness.effects import after, at_once, batches_outlast
from ledgerops.drills.harness.injector import Injector

TOPIC = "transactions"
TOPICS, LOAD = {TOPIC: 5}, ((TOPIC, steady(11, 200)),)
LATE_ONSET_SECONDS = 60.0  # the first batches take 20 s on a busy machine

# F17, retention loss. Batches are 10 s apart, so some records have not been read yet. `failOnDataLoss` is false, so
# Spark reports nothing.
RETENTION_LOSS_TRIGGER_SECONDS = 10.0
MAX_BATCH_SECONDS = 6.0  # from the plan of a batch to a moment at which it is surely done


@contextmanager
def retention_loss(injector: Injector) -> Iterator[None]:
    """Deletes between two batches, and notes how many records were lost by that."""
    log = BatchLog(injector.folder / "checkpoints" / "main")
    before = log.newest_planned
    injector.until(lambda: log.newest_planned != before, 3 * RETENTION_LOSS_TRIGGER_SECONDS, "a batch")
    injector.wait(MAX_BATCH_SECONDS)
    ends = log.newest.ends
    left = injector.broker.delete_read_and_unread(TOPIC)
    lost = sum(max(0, first - ends[TOPIC, str(partition)]) for partition, first in left.items())
    (injector.folder / "lost.json").write_text(json.dumps({"at": time.time(), "records": lost}), "utf-8")
    yield


def records_lost(bundle: Bundle) -> float | None:
    """When records were gone that no batch had read."""
    file = bundle.folder / "lost.json"
    stored = json.loads(file.read_text("utf-8")) if file.exists() else {"records": 0}
    return float(stored["at"]) if stored["records"] else None


# F23, rate limited. The topic retains 20 s, so the cap eventually puts records at risk of being deleted before they are
# read. (The broker checks for expired records only every five minutes, so none are deleted.)
RATE_LIMITED_TRIGGER_SECONDS = 4.0
RATE_LIMITED_CAP = 800  # offsets a batch
RATE_BEFORE, RATE_ADDED = 80, 320  # records a second: from the start, and in addition from the onset
MIN_BACKLOG_INTERVALS = 2  # the backlog must be what arrives in so many


@contextmanager
def rate_limited(injector: Injector) -> Iterator[None]:
    """More records arrive. In the end both producers stop, so that the backlog can be processed."""
    injector.broker.produce(TOPIC, steady(12, RATE_ADDED))
    yield
    injector.broker.stop_producers()


def backlog_of_two_intervals(bundle: Bundle) -> float | None:
    """When the backlog is what arrives in two intervals, by the rates of the producers and the cap."""
    arrival = RATE_BEFORE + RATE_ADDED
    at = bundle.times["injected"] + MIN_BACKLOG_INTERVALS * RATE_LIMITED_TRIGGER_SECONDS * arrival / (
        arrival - RATE_LIMITED_CAP / RATE_LIMITED_TRIGGER_SECONDS
    )
    return at if at < bundle.times["repaired"] else None


# F24, input stopped. The pause must be longer than a restart of a producer takes, so this drill is longer than most.
INPUT_STOPPED_PLAN = steady(11, 60, TWO_PARTITIONS)
DEBITS, CREDITS = "transactions.debits", "transactions.credits"


@contextmanager
def input_stopped(injector: Injector) -> Iterator[None]:
    """The second topic receives no records, while the first one does."""
    injector.broker.producers.pop(1).stop()
    yield
    injector.broker.produce(CREDITS, INPUT_STOPPED_PLAN)


# X3, slow broker that makes rows late. The query and one of two producers share the slow connection. That producer's
# rows arrive later and later, while the other producer's rows advance the watermark past them. The broker is the root
# cause; late data is the consequence. Uploads are a third of what the producer needs, whose waiting records are sent
# compressed.
UPLOAD_BYTES_PER_SECOND = 3_000


DRILLS = (
    scripted(
        name="slow-broker", id="F15", text="each broker response takes 0.3 s longer", topics=TOPICS, loads=LOAD,
        start=lambda app: app.job("dedup_transactions", app.topic()),
        breaks=lambda injector: injector.broker.proxy.with_toxics(latency=0.3, jitter=0.1), effect=batches_outlast(2.0),
        onset_seconds=LATE_ONSET_SECONDS, seconds=135.0,
        expected=("slow-source",), component=("source",), remedy="broker|network", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="broker-down", id="F16", text="the only broker is killed and comes back after 25 s", topics=TOPICS,
        loads=LOAD, start=lambda app: app.job("dedup_transactions", app.topic()),
        breaks=broker_down, effect=at_once, fault_seconds=25.0,
        expected=("source-unreachable",), component=("source",), remedy="broker",
        may=(*LATE_SYMPTOMS, "query-stuck", "slow-source"),
    ),
    scripted(
        name="retention-loss", id="F17", text="the topic loses records that the query has not read", topics=TOPICS,
        loads=LOAD, start=lambda app: app.job(
            "dedup_transactions", app.topic(lossy=True), trigger=RETENTION_LOSS_TRIGGER_SECONDS
        ),
        breaks=retention_loss, effect=records_lost, onset_seconds=LATE_ONSET_SECONDS, fault_seconds=50.0, seconds=115.0,
        recovers=False,  # what is lost stays lost
        expected=("data-loss",), component=("partition=transactions",), remedy="retention",
    ),
    scripted(
        name="rate-limited", id="F23", text="a cap of 200 records per second where 400 arrive", topics=TOPICS,
        topic_conf={"retention.ms": "20000"}, loads=((TOPIC, steady(11, RATE_BEFORE)),),
        start=lambda app: app.job(
            "dedup_transactions", app.topic(max_rows=RATE_LIMITED_CAP), trigger=RATE_LIMITED_TRIGGER_SECONDS
        ),
        breaks=rate_limited, effect=backlog_of_two_intervals, onset_seconds=LATE_ONSET_SECONDS, fault_seconds=32.0,
        seconds=152.0, expected=("rate-limited",), component=("source",), remedy="maxOffsetsPerTrigger",
        may=("input-overload", "falling-behind", "freshness-breach", "retention-risk"),
    ),
    scripted(
        name="input-stopped", id="F24", text="one of two inputs stops while the other continues",
        topics={DEBITS: 2, CREDITS: 2}, loads=((DEBITS, INPUT_STOPPED_PLAN), (CREDITS, INPUT_STOPPED_PLAN)),
        start=lambda app: app.query(app.topic("debits").unionByName(app.topic("credits"), allowMissingColumns=True)),
        breaks=input_stopped, effect=after(20.0),  # the input never pauses for so long
        onset_seconds=150.0,  # the topic must have been seen to flow for two minutes
        fault_seconds=85.0, seconds=255.0, deadline_seconds=60.0,
        expected=("input-stopped",), component=("source=transactions[.]credits",), remedy="producer",
    ),
    scripted(
        name="broker-and-late", id="X3", text="a slow broker delays the query and makes one producer's rows late",
        topics=TOPICS, loads=((TOPIC, steady(11, 150)),),
        prepare=lambda injector: injector.broker.produce(TOPIC, steady(12, 150), proxied=True),
        start=lambda app: app.job("dedup_transactions", app.topic(), lateness="5 seconds"),
        breaks=lambda injector: injector.broker.proxy.with_toxics(latency=0.3, upload=UPLOAD_BYTES_PER_SECOND),
        effect=batches_outlast(2.0), onset_seconds=LATE_ONSET_SECONDS, seconds=150.0,
        expected=("slow-source",), component=("source",), remedy="broker|network",
        may=(*LATE_SYMPTOMS, "late-data", "rows-dropped", "partition-time-spread", "query-stuck"),
    ),
)  # fmt: skip
