"""The Spark source of the generated ledger: admission, offsets, restarts."""

import json
import sys
import time

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ledgerops.ledger.plan import arrow
from ledgerops.ledger.plan.generate import Generator
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.sources.ads import ad_events
from ledgerops.ledger.sources.spark_source import LedgerReader, LedgerStreamReader, Options, register
from tests.ledger.sources.streams import to_files
from tests.programs import finished, until
from tests.refusals import refusal_of
from tests.tables import cases

TEXT = """
seed: 3
phases: [{shape: constant, rate: 100}]
keys: {customers: 40, accounts: 50}
partitions: {count: 3, pinned: {partition: 1, share: 0.5}}
duplicates: {share: 0.1, within: 3s}
"""
START = {"transactions": {"0": 0, "1": 0, "2": 0}}
ORIGIN = 1700000000.5


def reader(**options):
    return LedgerStreamReader(Options.of({"plan": TEXT, **{name: str(value) for name, value in options.items()}}))


def offsets(*heads):
    return {"transactions": {str(p): head for p, head in enumerate(heads)}}


def test_all_that_is_due_is_available_and_nothing_before_the_origin():
    heads = reader(origin=time.time() - 10).latestOffset(START, ReadAllAvailable())["transactions"]
    assert 1000 <= sum(heads.values()) < 3000
    assert heads["1"] == sum(heads.values()) // 2
    assert reader(origin=time.time() + 60).latestOffset(START, ReadAllAvailable()) == START


def test_a_cap_takes_the_rows_that_were_due_first_and_the_head_is_reported_whatever_it_is():
    source = reader(origin=time.time() - 1000, maxRowsPerTrigger=200, limit=5000)

    assert source.getDefaultReadLimit() == ReadMaxRows(200)
    assert source.latestOffset(START, ReadMaxRows(200)) == offsets(50, 100, 50)
    assert source.latestOffset(offsets(50, 100, 50), ReadMaxRows(200)) == offsets(100, 200, 100)
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
    until(lambda: source.reportLatestOffset() != target, 10, "that the clock moves on")
    assert source.latestOffset(target, ReadAllAvailable()) == target


def test_a_clock_that_was_set_back_takes_no_row_back():
    far = offsets(100_000, 200_000, 100_000)
    assert reader(origin=time.time()).latestOffset(far, ReadAllAvailable()) == far


def test_partitions_without_new_rows_are_left_out():
    parts = reader().partitions(offsets(0, 5, 7), offsets(4, 5, 9))
    assert [each for split in parts for each in split.slices] == [(0, 0, 4), (2, 7, 9)]


@cases(
    "start",
    ("spread otherwise", offsets(5, 0, 0)),
    ("another number of partitions", offsets(1, 2, 1, 0)),
    ("another topic", {"customers": {"0": 5}}),
)
def test_offsets_of_another_plan_are_refused(start):
    assert refusal_of(reader(origin=0).latestOffset, start, ReadAllAvailable()) == (
        f"the offsets {json.dumps(start)} do not belong to this plan: the checkpoint was written with another plan; "
        "use that plan, or start over"
    )


def test_a_bounded_read_needs_an_end():
    endless = LedgerReader(Options.of({"plan": TEXT}))
    assert "needs the option limit: this plan never ends" in refusal_of(endless.partitions)


def expected(count, origin):
    made = Generator(parse_plan(TEXT), origin)
    batches = [b for p, head in enumerate(made.layout.heads(count)) for b in made.batches(p, 0, head)]
    return rows(pa.Table.from_batches(batches, arrow.TRANSACTIONS))


def rows(table):
    return sorted(table.to_pylist(), key=lambda row: (row["transaction_id"], row["event_time"]))


@pytest.fixture
def load(spark):
    """The rows of the plan, read once or, with `stream`, as a stream."""
    register(spark)

    def load(stream=False, **options):
        source = (spark.readStream if stream else spark.read).format("ledger").option("plan", TEXT)
        return source.options(**{name: str(value) for name, value in options.items()}).load()

    return load


@pytest.mark.spark
def test_a_bounded_read_gives_exactly_the_generated_rows(load):
    assert rows(load(origin=ORIGIN, limit=1001).toArrow()) == expected(1001, ORIGIN)
    assert load(origin=ORIGIN, limit=0).count() == 0


@pytest.mark.spark
def test_ad_events_are_those_of_the_transactions_at_the_same_offsets(load):
    transactions = load(origin=ORIGIN, limit=90).toArrow().combine_chunks().to_batches()
    events = load(origin=ORIGIN, limit=90, table="ad_events").toArrow()
    assert sum(batch.num_rows for batch in transactions) == 90
    assert events.to_pylist() == [event for batch in transactions for event in ad_events(batch).to_pylist()]


@pytest.mark.spark
def test_a_restart_from_the_checkpoint_loses_and_repeats_nothing(spark, load, tmp_path):
    for limit in (300, 300, 1001):  # the second run finds nothing new
        frame = load(stream=True, origin=ORIGIN, limit=limit, maxRowsPerTrigger=130)
        progress = to_files(frame, tmp_path)

    assert rows(spark.read.parquet(str(tmp_path / "out")).toArrow()) == expected(1001, ORIGIN)
    first, last = progress[0].sources[0], progress[-1].sources[0]
    assert json.loads(first.latestOffset) == json.loads(last.endOffset) == offsets(251, 500, 250)


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
    done = finished(sys.executable, "-c", program)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
