"""State that grows without bound, is evicted at once, or is too much for its heap or its store."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ledgerops.drills.harness.case import FAULT_SECONDS, LATE_SYMPTOMS, ONSET_SECONDS, scripted, steady, stepped
from ledgerops.drills.harness.effects import batches_outlast, new_keys
from ledgerops.drills.harness.target_app import TargetApp

SMALL_HEAP = {
    "spark.driver.memory": "480m",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
}
FEW_KEYS = "keys: {customers: 300, accounts: 300}"


def from_onset(app: TargetApp, seconds: float) -> Column:
    """Whether a row came within so many seconds from the onset on."""
    came = F.col("event_time").cast("double") - app.origin
    return came.between(ONSET_SECONDS, ONSET_SECONDS + seconds)


def with_key(app: TargetApp, rows: DataFrame, seconds: float) -> DataFrame:
    """Adds the column `key`: the account's, and for `seconds` from the onset on each transaction's own."""
    new = from_onset(app, seconds)
    return rows.withColumn("key", F.when(new, F.col("transaction_id")).otherwise(F.col("account_id")))


def start_unbounded_state(app: TargetApp) -> None:
    rows = with_key(app, app.rows(steady(11, 400, FEW_KEYS)), FAULT_SECONDS)
    app.query(rows.dropDuplicates(["key"]))


# X4, growth leads to GC: a count by key that grows with each row fills the heap, and GC makes batches slow.
GROWTH_TO_GC_SECONDS = 74.0  # of new keys
FULL_HEAP_SECONDS = 16.0  # after them: the heap stays as full as it is, and a twentieth more would not fit
VALUE_CHARACTERS = 12_400  # that each key keeps


def start_growth_to_gc(app: TargetApp) -> None:
    rows = with_key(app, app.rows(steady(11, 400, FEW_KEYS)), GROWTH_TO_GC_SECONDS)
    kept = F.rpad("transaction_id", VALUE_CHARACTERS, "x")
    app.query(rows.groupBy("key").agg(F.count("*").alias("count"), F.first(kept).alias("first")), mode="update")


WINDOW_SECONDS = 45
EVICTION_STORM_PLAN = stepped(11, (36_000, WINDOW_SECONDS), (200, None))


def start_eviction_storm(app: TargetApp) -> None:
    since = round(app.origin * 1000) % (WINDOW_SECONDS * 1000)  # windows begin with the drill
    window = F.window("event_time", f"{WINDOW_SECONDS} seconds", startTime=f"{since} milliseconds")
    rows = app.rows(EVICTION_STORM_PLAN).withWatermark("event_time", "2 seconds")
    pad = F.repeat(F.col("transaction_id"), 10)
    app.query(rows.groupBy(window, "transaction_id").agg(F.count("*").alias("count"), F.first(pad).alias("pad")))


# F27, RocksDB stall: from the onset, the values of the state overflow its small write buffers.
LARGE_VALUE_BYTES = 40_000  # that each key keeps


def start_rocksdb_stall(app: TargetApp) -> None:
    # encrypted, since what can be compressed fills no buffer
    noise = F.aes_encrypt(F.rpad("transaction_id", LARGE_VALUE_BYTES, "x").cast("binary"), F.lit("0000111122223333"))
    rows = app.rows(steady(11, 800)).withColumn("noise", F.when(from_onset(app, FAULT_SECONDS), noise))
    counts = rows.groupBy("account_id").agg(F.count("*").alias("count"), F.last("noise").alias("noise"))
    app.query(counts, mode="update")


# F12, state store pressure: from the onset, a long window receives very many keys on a small heap.
KEYS_PER_ROW = 26
GROWTH_SECONDS = 52.0  # brings 810,000 keys, which take more than half of the heap but do not fill it


def start_state_store_pressure(app: TargetApp) -> None:
    many = F.sequence(F.lit(1), F.lit(KEYS_PER_ROW))
    copies = F.when(from_onset(app, GROWTH_SECONDS), many).otherwise(F.array(F.lit(0)))
    rows = app.rows(steady(11, 600, FEW_KEYS)).withWatermark("event_time", "2 seconds")
    rows = rows.withColumn("copy", F.explode(copies))
    key = F.when(F.col("copy") > 0, F.col("transaction_id")).otherwise(F.col("account_id"))
    windows = rows.withColumn("key", key).groupBy(F.window("event_time", "1 day"), "key", "copy")
    app.query(windows.agg(F.count("*").alias("count"), F.sum("amount").alias("sum")), mode="update")


DRILLS = (
    scripted(
        name="unbounded-state", id="F11", text="a deduplication without a watermark, where each row has a new key",
        start=start_unbounded_state, effect=new_keys(4000), seconds=135.0,
        expected=("unbounded-state",), component=("operator",), remedy="watermark|time to live",
    ),
    scripted(
        name="growth-to-gc", id="X4", text="state that grows with each row fills the heap, and GC makes batches slow",
        start=start_growth_to_gc, effect=batches_outlast(1.5, times=3), conf=SMALL_HEAP,
        fault_seconds=GROWTH_TO_GC_SECONDS + FULL_HEAP_SECONDS, seconds=150.0, recovers=False,
        expected=("unbounded-state", "state-growth"), component=("operator",), remedy="watermark|time to live",
        may=(*LATE_SYMPTOMS, "unbounded-state", "state-growth", "gc-pressure", "cpu-saturated"),
    ),
    scripted(
        name="eviction-storm", id="F25", text="a window with very many keys closes, and one batch removes them all",
        start=start_eviction_storm, heavy=True, conf={"spark.driver.memory": "2g"},
        effect=batches_outlast(4.0),  # twice the interval: a spike below that hurts nobody
        fault_seconds=25.0, seconds=100.0,
        expected=("eviction-storm",), component=("operator",), remedy="spread", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="rocksdb-stall", id="F27", text="large values overflow the small write buffers of RocksDB",
        start=start_rocksdb_stall, effect=batches_outlast(2.0), conf={
            "spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB": "1",
            "spark.sql.streaming.stateStore.rocksdb.maxWriteBufferNumber": "2",
        },
        expected=("rocksdb-stall",), component=("operator",), remedy="write buffers|SSD",
        may=(*LATE_SYMPTOMS, "state-commit-slow"),
    ),
    scripted(
        name="state-store-pressure", id="F12", text="very many keys of a long window on a small heap",
        start=start_state_store_pressure, effect=batches_outlast(2.0, times=3), conf=SMALL_HEAP,
        fault_seconds=GROWTH_SECONDS, seconds=107.0, recovers=False,
        # by its growth, or before that is seen to last, by what it leads to
        expected=("state-growth", "gc-pressure"), component=("operator", "executor"), remedy="more memory|RocksDB",
        may=(*LATE_SYMPTOMS, "state-commit-slow", "cpu-saturated"),
    ),
)  # fmt: skip
