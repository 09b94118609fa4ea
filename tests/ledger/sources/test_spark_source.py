"""The Spark source of the generated ledger: admission, offsets, restarts."""

import json
import subprocess
import sys
import time

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ledgerops.errors import UserError
from ledgerops.ledger.plan import arrow
from ledgerops.ledger.plan.generate import Generator
from ledgerops.ledger.plan.partitioning import Layout
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.sources.ads import ad_events
from ledgerops.ledger.sources.spark_source import LedgerReader, LedgerStreamReader, Options, register

TEXT = """
seed: 3
phases: [{shape: constant, rate: 100}]
keys: {customers: 40, accounts: 50}
partitions: {count: 3, pinned: {partition: 1, share: 0.5}}
duplicates: {share: 0.1, within: 3s}
"""
START = {"transactions": {"0": 0, "1": 0, "2": 0}}


def reader(**options):
    return LedgerStreamReader(Options.of({"plan": TEXT, **{name: str(value) for name, value in options.items()}}))


def offsets(*heads):
    return {"transactions": {str(p): head for p, head in enumerate(heads)}}


def test_all_that_is_due_is_available():
    latest = reader(origin=time.time() - 10).latestOffset(START, ReadAllAvailable())
    assert 1000 <= sum(latest["transactions"].values()) < 3000
    assert latest["transactions"]["1"] == sum(latest["transactions"].values()) // 2


def test_nothing_is_available_before_the_origin():
    assert reader(origin=time.time() + 60).latestOffset(START, ReadAllAvailable()) == START


def test_a_cap_takes_the_rows_that_were_due_first():
    source = reader(origin=time.time() - 1000, maxRowsPerTrigger=200)

    assert source.getDefaultReadLimit() == ReadMaxRows(200)
    first = source.latestOffset(START, ReadMaxRows(200))
    assert first == offsets(50, 100, 50)
    assert source.latestOffset(first, ReadMaxRows(200)) == offsets(100, 200, 100)


def test_the_head_is_reported_whatever_the_cap():
    source = reader(origin=time.time() - 1000, maxRowsPerTrigger=1, limit=5000)
    source.latestOffset(START, ReadMaxRows(1))
    assert source.reportLatestOffset() == offsets(1250, 2500, 1250)


def test_after_the_limit_the_source_is_dry():
    source = reader(origin=0, limit=400)
    assert source.latestOffset(START, ReadAllAvailable()) == offsets(100, 200, 100)
    assert source.latestOffset(offsets(100, 200, 100), ReadAllAvailable()) == offsets(100, 200, 100)


GROWING = """
phases: [{shape: constant, rate: 100, duration: 20}, {shape: constant, rate: 0}]
partitions: {count: 2}
changes: [{from: 10s, partitions: {count: 4}}]
"""


def test_partitions_that_a_change_adds_appear_with_its_first_record():
    source = reader(plan=GROWING, origin=time.time() - 1000)
    before = source.latestOffset(offsets(0, 0), ReadMaxRows(999))
    after = source.latestOffset(before, ReadMaxRows(5))

    # the record that is due at the tenth second is the first of the change
    assert (before, after) == (offsets(500, 499), offsets(502, 500, 1, 1))
    parts = source.partitions(before, after)
    assert [each for split in parts for each in split.slices] == [(0, 500, 502), (1, 499, 500), (2, 0, 1), (3, 0, 1)]
    assert source.latestOffset(after, ReadMaxRows(4)) == offsets(503, 501, 2, 2)


def test_a_load_that_has_ended_gives_no_more():
    source = reader(plan=GROWING, origin=time.time() - 1000)
    end = source.latestOffset(offsets(0, 0), ReadAllAvailable())

    assert sum(end["transactions"].values()) == 2000
    assert source.latestOffset(end, ReadAllAvailable()) == end
    bounded = LedgerReader(Options.of({"plan": GROWING})).partitions()
    assert sum(each.end - each.start for split in bounded for each in split.slices) == 2000


def test_available_now_ends_where_it_began():
    source = reader(origin=time.time() - 2)
    source.prepareForTriggerAvailableNow()
    target = source.latestOffset(START, ReadAllAvailable())
    began = time.monotonic()
    while source.reportLatestOffset() == target:  # until the clock has moved on
        assert time.monotonic() - began < 10

    assert source.latestOffset(target, ReadAllAvailable()) == target


def test_a_clock_that_was_set_back_takes_no_row_back():
    far = offsets(100_000, 200_000, 100_000)
    assert reader(origin=time.time()).latestOffset(far, ReadAllAvailable()) == far


def test_partitions_without_new_rows_are_left_out():
    parts = reader().partitions(offsets(0, 5, 7), offsets(4, 5, 9))
    assert [each for split in parts for each in split.slices] == [(0, 0, 4), (2, 7, 9)]


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(offsets(5, 0, 0), id="spread otherwise"),
        pytest.param(offsets(1, 2, 1, 0), id="another number of partitions"),
        pytest.param({"customers": {"0": 5}}, id="another topic"),
    ],
)
def test_offsets_of_another_plan_are_refused(start):
    with pytest.raises(UserError) as caught:
        reader(origin=0).latestOffset(start, ReadAllAvailable())

    assert str(caught.value) == (
        f"the offsets {json.dumps(start)} do not belong to this plan: the checkpoint was written with another plan; "
        "use that plan, or start over"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plan": ""}, "the source ledger needs the option plan (the plan's YAML text) or path (a prepared file)"),
        ({"origin": "now"}, "option origin of the source ledger: expected a number >= 0, got 'now'"),
        ({"limit": "-1"}, "option limit of the source ledger: expected a whole number >= 0, got '-1'"),
        (
            {"table": "customers"},
            "option table of the source ledger: expected transactions or ad_events, got 'customers'",
        ),
        (
            {"maxRowsPerTrigger": "0"},
            "option maxRowsPerTrigger of the source ledger: expected a whole number >= 1, got '0'",
        ),
        ({"plan": "phases: 1"}, "plan.yaml:1: phases: expected a list, got 1"),
    ],
)
def test_a_bad_option_is_named(options, message):
    with pytest.raises(UserError) as caught:
        reader(**options).initialOffset()
    assert str(caught.value) == message


def test_a_stream_without_origin_says_what_it_needs():
    with pytest.raises(UserError, match="needs the option origin"):
        reader().latestOffset(START, ReadAllAvailable())


def test_a_bounded_read_needs_an_end():
    with pytest.raises(UserError, match="needs the option limit: this plan never ends"):
        LedgerReader(Options.of({"plan": TEXT})).partitions()


def expected(count, origin):
    plan = parse_plan(TEXT)
    made = Generator(plan, origin)
    batches = [b for p, head in enumerate(Layout(plan.partitions).heads(count)) for b in made.batches(p, 0, head)]
    return rows(pa.Table.from_batches(batches, arrow.TRANSACTIONS))


def rows(table):
    return sorted(table.to_pylist(), key=lambda row: (row["transaction_id"], row["event_time"]))


def stream(spark, **options):
    register(spark)
    reader = spark.readStream.format("ledger").option("plan", TEXT)
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


@pytest.mark.spark
def test_spark_reads_the_columns_that_were_agreed(spark):
    from pyspark.sql.types import StructType

    from ledgerops.ledger.plan.schemas import TRANSACTIONS

    assert stream(spark, origin=0).schema == StructType.fromDDL(TRANSACTIONS)


@pytest.mark.spark
def test_a_bounded_read_gives_exactly_the_generated_rows(spark):
    register(spark)
    given = {"plan": TEXT, "origin": "1700000000.5"}
    frame = spark.read.format("ledger").options(**given, limit=1001).load()

    assert rows(frame.toArrow()) == expected(1001, 1700000000.5)
    assert spark.read.format("ledger").options(**given, limit=0).load().count() == 0


@pytest.mark.spark
def test_ad_events_are_those_of_the_transactions_at_the_same_offsets(spark):
    register(spark)
    given = {"plan": TEXT, "origin": "1700000000.5", "limit": "90"}
    transactions = spark.read.format("ledger").options(**given).load().toArrow().combine_chunks().to_batches()
    events = spark.read.format("ledger").options(**given, table="ad_events").load().toArrow()

    assert sum(batch.num_rows for batch in transactions) == 90
    assert events.to_pylist() == [event for batch in transactions for event in ad_events(batch).to_pylist()]


@pytest.mark.spark
def test_a_restart_from_the_checkpoint_loses_and_repeats_nothing(spark, tmp_path):
    origin = 1700000000.5
    for limit in (300, 300, 1001):  # the second run finds nothing new
        query = (
            stream(spark, origin=origin, limit=limit, maxRowsPerTrigger=130)
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    found = rows(spark.read.parquet(str(tmp_path / "out")).toArrow())
    assert found == expected(1001, origin)
    ends = [progress.sources[0].endOffset for progress in query.recentProgress]
    assert json.loads(ends[-1]) == offsets(251, 500, 250)
    assert json.loads(query.recentProgress[0].sources[0].latestOffset) == offsets(251, 500, 250)


def test_the_processes_of_the_source_do_without_pandas():
    program = """
import sys, time
from pyspark.sql.streaming.datasource import ReadAllAvailable
from ledgerops.ledger.plan.plan import load_plan
from ledgerops.ledger.sources.spark_source import LedgerStreamReader, Options
for table in ("transactions", "ad_events"):
    options = {"plan": load_plan("default").text, "origin": str(time.time() - 60), "table": table}
    reader = LedgerStreamReader(Options.of(options))
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert sum(batch.num_rows for split in reader.partitions(start, end) for batch in reader.read(split)) > 30_000
print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
