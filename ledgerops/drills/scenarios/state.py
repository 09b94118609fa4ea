"""State that grows without bound, is evicted at once, or is too much for its heap or its store."""

from __future__ import annotations

from ledgerops.drills.harness.drill import FAULT_SECONDS, LATE_SYMPTOMS, ONSET_SECONDS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.new_keys import new_keys, with_key
from ledgerops.drills.harness.target_app import TargetApp

SMALL_HEAP = (
    ("spark.driver.memory", "480m"),
    (
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    ),
)


# F11, unbounded state: a deduplication without a watermark, where from the onset each row has a new key.
UNBOUNDED_STATE_PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 400}]
keys: {customers: 300, accounts: 300}
"""


def start_unbounded_state(app: TargetApp) -> None:
    rows = with_key(app, app.rows(UNBOUNDED_STATE_PLAN), FAULT_SECONDS)
    app.query(rows.dropDuplicates(["key"]))


UNBOUNDED_STATE = Drill(
    name="unbounded-state",
    id="F11",
    summary="a deduplication without a watermark, where each row has a new key",
    start=start_unbounded_state,
    effect=new_keys(4000),
    truth=cause("unbounded-state", component=("operator",), remedy="watermark|time to live"),
    recovery_seconds=45.0,
)


# X4, growth leads to GC: a count by key that grows with each row fills the heap, and GC makes batches slow.
GROWTH_TO_GC_SECONDS = 74.0  # of new keys
FULL_HEAP_SECONDS = 16.0  # after them: the heap stays as full as it is, and a twentieth more would not fit
VALUE_CHARACTERS = 12_400  # that each key keeps
GROWTH_TO_GC_PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 400}]
keys: {customers: 300, accounts: 300}
"""


def start_growth_to_gc(app: TargetApp) -> None:
    from pyspark.sql import functions as F

    rows = with_key(app, app.rows(GROWTH_TO_GC_PLAN), GROWTH_TO_GC_SECONDS)
    kept = F.rpad("transaction_id", VALUE_CHARACTERS, "x")
    app.query(rows.groupBy("key").agg(F.count("*").alias("count"), F.first(kept).alias("first")), mode="update")


GROWTH_TO_GC = Drill(
    name="growth-to-gc",
    id="X4",
    kind="combined",
    summary="state that grows with each row fills the heap, and GC makes batches slow",
    start=start_growth_to_gc,
    effect=batches_outlast(1.5, times=3),
    truth=cause(
        "unbounded-state",
        "state-growth",
        component=("operator",),
        remedy="watermark|time to live",
        may=(*LATE_SYMPTOMS, "unbounded-state", "state-growth", "gc-pressure", "cpu-saturated"),
    ),
    fault_seconds=GROWTH_TO_GC_SECONDS + FULL_HEAP_SECONDS,
    recovers=False,
    recovery_seconds=15.0,
    conf=SMALL_HEAP,
)


# F25, eviction storm: a window with very many keys closes, and one batch has to remove them all.
WINDOW_SECONDS = 45
EVICTION_STORM_PLAN = f"""
seed: 11
start: now
phases:
  - {{shape: constant, rate: 36000, duration: {WINDOW_SECONDS}s}}
  - {{shape: constant, rate: 200}}
"""


def start_eviction_storm(app: TargetApp) -> None:
    from pyspark.sql import functions as F

    since = round(app.origin * 1000) % (WINDOW_SECONDS * 1000)  # windows begin with the drill
    window = F.window("event_time", f"{WINDOW_SECONDS} seconds", startTime=f"{since} milliseconds")
    rows = app.rows(EVICTION_STORM_PLAN).withWatermark("event_time", "2 seconds")
    pad = F.repeat(F.col("transaction_id"), 10)
    app.query(rows.groupBy(window, "transaction_id").agg(F.count("*").alias("count"), F.first(pad).alias("pad")))


EVICTION_STORM = Drill(
    name="eviction-storm",
    id="F25",
    summary="a window with very many keys closes, and one batch removes them all",
    start=start_eviction_storm,
    effect=batches_outlast(4.0),  # twice the interval: a spike below that hurts nobody
    truth=cause("eviction-storm", component=("operator",), remedy="spread", may=LATE_SYMPTOMS),
    fault_seconds=25.0,
    conf=(("spark.driver.memory", "2g"),),
    heavy=True,
)


# F27, RocksDB stall: from the onset, the values of the state overflow its small write buffers.
LARGE_VALUE_BYTES = 40_000  # that each key keeps
ROCKSDB_STALL_PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 800}]}"


def start_rocksdb_stall(app: TargetApp) -> None:
    from pyspark.sql import functions as F

    came = F.col("event_time").cast("double") - app.origin
    large = came.between(ONSET_SECONDS, ONSET_SECONDS + FAULT_SECONDS)
    # encrypted, since what can be compressed fills no buffer
    noise = F.aes_encrypt(F.rpad("transaction_id", LARGE_VALUE_BYTES, "x").cast("binary"), F.lit("0000111122223333"))
    rows = app.rows(ROCKSDB_STALL_PLAN).withColumn("noise", F.when(large, noise))
    counts = rows.groupBy("account_id").agg(F.count("*").alias("count"), F.last("noise").alias("noise"))
    app.query(counts, mode="update")


ROCKSDB_STALL = Drill(
    name="rocksdb-stall",
    id="F27",
    summary="large values overflow the small write buffers of RocksDB",
    start=start_rocksdb_stall,
    effect=batches_outlast(2.0),
    truth=cause(
        "rocksdb-stall", component=("operator",), remedy="write buffers|SSD", may=(*LATE_SYMPTOMS, "state-commit-slow")
    ),
    conf=(
        ("spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB", "1"),
        ("spark.sql.streaming.stateStore.rocksdb.maxWriteBufferNumber", "2"),
    ),
)


# F12, state store pressure: from the onset, a long window receives very many keys on a small heap.
KEYS_PER_ROW = 26
GROWTH_SECONDS = 52.0  # brings 810,000 keys, which take more than half of the heap but do not fill it
STATE_STORE_PRESSURE_PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 600}]
keys: {customers: 300, accounts: 300}
"""


def start_state_store_pressure(app: TargetApp) -> None:
    from pyspark.sql import functions as F

    came = F.col("event_time").cast("double") - app.origin
    many = F.sequence(F.lit(1), F.lit(KEYS_PER_ROW))
    copies = F.when(came.between(ONSET_SECONDS, ONSET_SECONDS + GROWTH_SECONDS), many).otherwise(F.array(F.lit(0)))
    rows = (
        app.rows(STATE_STORE_PRESSURE_PLAN)
        .withWatermark("event_time", "2 seconds")
        .withColumn("copy", F.explode(copies))
    )
    key = F.when(F.col("copy") > 0, F.col("transaction_id")).otherwise(F.col("account_id"))
    windows = rows.withColumn("key", key).groupBy(F.window("event_time", "1 day"), "key", "copy")
    app.query(windows.agg(F.count("*").alias("count"), F.sum("amount").alias("sum")), mode="update")


STATE_STORE_PRESSURE = Drill(
    name="state-store-pressure",
    id="F12",
    summary="very many keys of a long window on a small heap",
    start=start_state_store_pressure,
    effect=batches_outlast(2.0, times=3),
    truth=cause(
        "gc-pressure",
        component=("executor",),
        remedy="RocksDB",
        may=(*LATE_SYMPTOMS, "state-growth", "state-commit-slow", "cpu-saturated"),
    ),
    fault_seconds=GROWTH_SECONDS,
    recovers=False,
    recovery_seconds=10.0,
    conf=SMALL_HEAP,
)


DRILLS = (UNBOUNDED_STATE, GROWTH_TO_GC, EVICTION_STORM, ROCKSDB_STALL, STATE_STORE_PRESSURE)
