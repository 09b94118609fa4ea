"""What Spark says of a job's books and of the times of its rows: exact, whatever the columns hold, and no batch that
ends because of them."""

import json
from datetime import datetime
from decimal import Decimal

import pytest

import ledgerops
from ledgerops.errors import UserError
from ledgerops.metrics.latency import EVENT_BOUNDS, LE
from ledgerops.model.observed_metrics import book_of, conflicts_of
from ledgerops.model.spark_progress import parse_progress
from tests.tables import cases


@pytest.fixture
def observed(spark, tmp_path):
    """The progress of the one batch that reads these rows, through `books`."""

    def read(rows, schema, books=both):
        spark.createDataFrame(rows, schema).write.parquet(str(tmp_path / "input"))
        stream = spark.readStream.schema(schema).parquet(str(tmp_path / "input"))
        query = books(stream).writeStream.format("noop").trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return parse_progress(json.loads(query.lastProgress.json))

    return read


def both(frame, change=lambda rows: rows):
    return ledgerops.book(change(ledgerops.book(frame, "in", amount="amount")), "out", amount="amount")


def test_a_balanced_batch_has_the_same_rows_and_the_same_exact_sum(observed):
    rows = [(Decimal("9007199254740993.01"),), (Decimal("0.01"),), (Decimal("-5.00"),), (None,)]
    book = book_of(observed(rows, "amount DECIMAL(18,2)"))
    assert (book.rows_in, book.rows_out, book.amount_in) == (4, 4, Decimal("9007199254740988.02"))
    assert book.balanced


def test_rows_that_are_filtered_and_amounts_that_are_changed_on_the_way_show(observed):
    def filtered(frame):
        return both(frame, lambda rows: rows.where("amount > 3"))

    book = book_of(observed([(Decimal(n),) for n in range(1, 101)], "amount DECIMAL(18,2)", filtered))
    assert (book.rows, book.amount) == (3, Decimal(6))


@cases(
    "schema, rows, total",
    ("doubles", "amount DOUBLE", [(0.1,), (0.2,), (float("nan"),), (1e300,)], Decimal("0.30")),
    ("text", "amount STRING", [("7.50",), ("seven",)], Decimal("7.50")),
    ("whole numbers beyond 64 bits", "amount BIGINT", [(2**62,), (2**62,)], Decimal(2**63)),
    ("no amount at all", "amount DECIMAL(18,2)", [(None,)], Decimal(0)),
)
def test_what_is_no_amount_is_left_out_and_ends_no_query(observed, schema, rows, total):
    book = book_of(observed(rows, schema))
    assert (book.rows_in, book.amount_in, book.balanced) == (len(rows), total, True)


def test_conflicts_are_counted_with_a_sample_of_hashed_keys(observed):
    rows = [(f"T{n % 9}",) for n in range(40)]
    conflicts = conflicts_of(observed(rows, "`id of it` STRING", lambda frame: ledgerops.conflicts(frame, "id of it")))
    assert conflicts.rows == 40
    assert len(conflicts.ids) == 5 and all(len(each) == 12 for each in conflicts.ids)


def test_an_unknown_side_or_column_is_refused(spark):
    frame = spark.range(1)
    with pytest.raises(UserError, match="no side 'inn' of a book; give in or out"):
        ledgerops.book(frame, "inn")
    with pytest.raises(UserError, match="no column 'amount' to book; there are id"):
        ledgerops.book(frame, "in", amount="amount")


@cases(
    "type, times, known",
    ("text", "STRING", ["2026-11-21 08:00:00", "yesterday", "", None], 1),
    ("times", "TIMESTAMP", [datetime(2026, 11, 21), datetime(1, 1, 2), datetime(9999, 12, 30)], 3),
    ("seconds, and what is out of all bounds", "BIGINT", [1_795_000_000, 2**63 - 1, -(2**63)], 3),
    ("fractions", "DOUBLE", [1.795e9, float("nan"), float("inf")], 1),
)
def test_what_is_no_time_is_left_out_and_ends_no_query(observed, type, times, known):
    def timed(frame):
        return ledgerops.instrument(frame, event_time="a.t", key="a.k")

    rows = [(time, f"K{number}") for number, time in enumerate(times)]
    [metrics] = observed(rows, f"`a.t` {type}, `a.k` STRING", timed).observed.values()
    assert (metrics["rows"], metrics[f"{LE}{len(EVENT_BOUNDS)}"]) == (len(rows), known)
    assert len(metrics["hot_keys"]) == len(rows)
