import json
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ledgerops.ledger.plan import arrow, schemas
from ledgerops.ledger.sources import ads, arrow_file, customers, replay
from ledgerops.ledger.sources.arrow_file import FileRows
from ledgerops.ledger.sources.csv_file import rejected
from ledgerops.ledger.sources.spark_source import LedgerStreamReader, Options, register
from tests.ledger.sources.streams import to_files
from tests.refusals import refusal_of
from tests.tables import cases

HEADER = ",".join(replay.COLUMNS)
GOOD = "T1,A1,Credit,Credit in Cash,700.00,1700.05,,2013-01-01T09:19:27,C1"


@pytest.fixture
def prepare(tmp_path):
    """Writes transactions.csv with these lines and prepares it in the folder `work`."""

    def prepare(*lines, header=HEADER):
        (tmp_path / "transactions.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
        return replay.prepare(tmp_path / "transactions.csv", tmp_path / "work")

    return prepare


@pytest.fixture
def rejects(tmp_path):
    """What is said of each row that was kept aside, and the row."""
    return lambda: [(each["file"], each["line"], each["reason"], each["text"]) for each in rejected(tmp_path / "work")]


def many(count):
    start = datetime(2013, 1, 1)
    return [
        f"T{row},A{row % 37},Debit,,{row}.01,0.00,,{(start + timedelta(seconds=row)).isoformat()},C{row % 37}"
        for row in range(count)
    ]


def rows(prepared):
    found, counts = FileRows(prepared.path), enumerate(prepared.counts)
    return pa.Table.from_batches(
        batch for partition, count in counts if count for batch in found.batches(partition, 0, count)
    ).to_pylist()


def test_a_good_row_keeps_its_values_exactly(prepare):
    prepared = prepare(GOOD)
    assert (prepared.rows, prepared.rejected) == (1, 0)
    assert rows(prepared) == [
        {
            "transaction_id": "T1",
            "account_id": "A1",
            "customer_id": "C1",
            "event_time": datetime(2013, 1, 1, 9, 19, 27, tzinfo=UTC),
            "type": "Credit",
            "operation": "Credit in Cash",
            "amount": Decimal("700.00"),
            "balance": Decimal("1700.05"),
        }
    ]


@cases(
    "line, reason",
    ("too few columns", "T2,A1,Credit", "3 columns, expected 9"),
    ("too many columns", GOOD + ",more", "10 columns, expected 9"),
    ("repeated header", HEADER, "repeated header"),
    ("no transaction id", GOOD.replace("T1", ""), "no trans_id"),
    ("blank account id", GOOD.replace("A1", " "), "no account_id"),
    ("no customer id", GOOD.replace("C1", ""), "no customer_id"),
    ("unknown type", GOOD.replace("Credit,", "Loan,"), "type 'Loan' is not Credit or Debit"),
    ("stray quote", GOOD.replace("Credit in", '"Credit in'), "unexpected end of data"),
)
def test_a_bad_row_is_kept_aside_with_its_line_and_reason(prepare, rejects, line, reason):
    prepared = prepare(GOOD, line, GOOD)
    assert (prepared.rows, prepared.rejected) == (2, 1)
    assert rejects() == [("transactions.csv", 3, reason, line)]


@cases(
    "good, column, bad",
    ("a word", "700.00", "amount", "seven"),
    ("thirds", "700.00", "amount", "7.005"),
    ("not a number", "700.00", "amount", "NaN"),
    ("an exponent", "700.00", "amount", "1e5"),
    ("more digits than the column holds", "1700.05", "balance", "10000000000000000"),
    ("day 32", "2013-01-01T09:19:27", "fulldatewithtime", "2013-01-32T09:19:27"),
    ("a date alone", "2013-01-01T09:19:27", "fulldatewithtime", "2013-01-01"),
)
def test_a_bad_number_or_time_is_quoted_in_the_reason(prepare, rejects, good, column, bad):
    kind = "a date and time" if column == "fulldatewithtime" else "an amount with at most two decimals"
    line = GOOD.replace(f",{good},", f",{bad},")
    prepare(GOOD, line)
    assert rejects() == [("transactions.csv", 3, f"{column} '{bad}' is not {kind}", line)]


@cases(
    "old, new, column, value",
    ("negative with one decimal", "700.00", "-7.5", "amount", Decimal("-7.50")),
    ("whole number", "700.00", "7", "amount", Decimal("7.00")),
    ("the largest", "1700.05", "9" * 16 + ".99", "balance", Decimal("9" * 16 + ".99")),
    ("no operation", "Credit in Cash", "", "operation", None),
    ("quoted comma", "Credit in Cash", '"in, cash"', "operation", "in, cash"),
    ("an offset", "27,C1", "27+02:00,C1", "event_time", datetime(2013, 1, 1, 7, 19, 27, tzinfo=UTC)),
)
def test_an_unusual_good_row_is_taken(prepare, rejects, old, new, column, value):
    assert rows(prepare(GOOD.replace(old, new)))[0][column] == value
    assert rejects() == []


def test_bytes_that_are_not_utf8_spoil_only_their_row(tmp_path):
    lines = [HEADER.encode(), GOOD.encode(), GOOD.encode().replace(b"Cash", b"\xff") + b"\r\n\r", GOOD.encode()]
    (tmp_path / "transactions.csv").write_bytes(b"\n".join(lines))
    prepared = replay.prepare(tmp_path / "transactions.csv", tmp_path / "work")
    assert (prepared.rows, prepared.rejected) == (2, 1)
    assert rejected(tmp_path / "work")[0]["reason"] == "not UTF-8"


@cases(
    "header, message",
    ("empty file", "", f"no column {', '.join(replay.COLUMNS)}; expected {HEADER}"),
    ("renamed column", HEADER.replace("amount", "sum"), f"no column amount; expected {HEADER}"),
    ("column twice", HEADER + ",amount", "column amount occurs more than once"),
    ("stray quote", '"trans_id', f"unexpected end of data; expected {HEADER}"),
)
def test_a_wrong_header_is_one_line(prepare, tmp_path, header, message):
    assert refusal_of(prepare, GOOD, header=header) == f"cannot read {tmp_path}/transactions.csv:1: {message}"


def test_columns_may_come_in_another_order_with_a_byte_order_mark(prepare):
    backwards = ",".join(reversed(GOOD.split(",")))
    prepared = prepare(backwards, header="\ufeff" + ",".join(reversed(replay.COLUMNS)))
    assert rows(prepared)[0]["transaction_id"] == "T1"


def test_a_file_without_one_good_row_is_refused_and_its_rows_kept(prepare, rejects, tmp_path):
    told = refusal_of(prepare, "bad")
    kept = tmp_path.joinpath("work", "rejects.jsonl")
    assert told.startswith(f"no usable row in transactions.csv: 1 rejected, see {kept}")
    assert len(rejects()) == 1


def test_a_second_run_reuses_the_prepared_file_unless_it_changed_or_its_rejects_are_gone(prepare, rejects, tmp_path):
    first = prepare(GOOD, "bad")
    written = first.path.stat().st_mtime_ns
    assert prepare(GOOD, "bad") == first
    assert first.path.stat().st_mtime_ns == written

    (tmp_path / "work" / "rejects.jsonl").unlink()
    prepare(GOOD, "bad")
    assert len(rejects()) == 1
    assert prepare(GOOD).path != first.path
    assert rejects() == []


def test_file_order_is_kept_within_a_partition_and_an_account_stays_in_one(prepare):
    prepared = prepare(*many(1000))
    positions = FileRows(prepared.path).positions
    ids = [int(row["transaction_id"][1:]) for row in rows(prepared)]

    assert [len(each) for each in positions] == list(prepared.counts)
    assert ids == np.concatenate(positions).tolist()
    assert sorted(ids) == list(range(1000))
    assert all((np.diff(each) > 0).all() for each in positions)


def test_batches_hold_at_most_65536_rows(tmp_path):
    table = pa.table({"n": np.arange(150_000)})
    prepared = arrow_file.keep(tmp_path, "n.csv", "x", 1, lambda: (table, [0] * 150_000, []))
    sizes = [batch.num_rows for batch in FileRows(prepared.path).batches(0, 10, 150_000)]
    assert sum(sizes) == 149_990
    assert max(sizes) <= 65_536


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Keeps a file whose row n, with the number n, is in partition `partition[n]` of five."""
    folder = tmp_path_factory.mktemp("kept")

    def keep(partition):
        table = pa.table({"n": pa.array(range(len(partition)), pa.int64())})
        name = "-" + "".join(map(str, partition))
        return arrow_file.keep(folder, "n.csv", name, 5, lambda: (table, partition, [])).path

    return keep


def reader(path, **options):
    return LedgerStreamReader(Options.of({"path": str(path), **{name: str(value) for name, value in options.items()}}))


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=60),
    st.lists(st.integers(1, 20), min_size=1, max_size=80),
    st.data(),
)
def test_any_sequence_of_limits_gives_every_row_once_and_in_file_order(kept, partition, limits, data):
    path, seen = kept(partition), []
    offsets = reader(path).initialOffset()
    for limit in [*limits, None]:
        arrived = len(partition) if limit is None else data.draw(st.integers(0, len(partition)))
        source, most = reader(path, limit=arrived), ReadAllAvailable() if limit is None else ReadMaxRows(limit)
        end = source.latestOffset(offsets, most)
        batches = [batch for split in source.partitions(offsets, end) for batch in source.read(split)]
        new = sorted(row["n"] for batch in batches for row in batch.to_pylist())
        assert new == list(range(len(seen), len(seen) + len(new)))
        assert limit is None or len(new) <= limit
        seen, offsets = seen + new, end
    assert seen == list(range(len(partition)))


def test_offsets_of_another_file_are_refused_and_those_of_one_that_grew_at_its_end_are_valid(kept):
    small, grown = reader(kept([0, 1, 2])), reader(kept([0, 1, 2, 1, 0]))
    assert grown.count_at(small.offsets_at(3)) == 3
    given = {"transactions": {"0": 0, "1": 0, "2": 1, "3": 0, "4": 0}}
    assert refusal_of(small.latestOffset, given, ReadAllAvailable()) == (
        f"the offsets {json.dumps(given)} do not belong to this file: the checkpoint was written with another file; "
        "use that file, or start over"
    )


@pytest.mark.parametrize(("limit", "rows"), [(4, 4), (99, 10)])
def test_a_file_needs_no_origin_and_a_limit_only_shortens_it(kept, limit, rows):
    source = reader(kept([0] * 10), limit=limit)
    end = source.latestOffset(source.initialOffset(), ReadAllAvailable())
    assert sum(end["transactions"].values()) == rows


@pytest.mark.parametrize(
    ("rate", "seconds", "expected"),
    [(10, 2.55, 25), (10, 1e9, 100), (10, -5, 0), (0, 0, 100), (0, -5, 100), (0.5, 3, 1)],
)
def test_rows_arrive_at_the_rate(kept, rate, seconds, expected):
    assert FileRows(kept([0] * 100), rate).due(seconds) == expected


@pytest.mark.spark
def test_the_columns_are_those_of_the_contract(spark):
    from pyspark.sql.pandas.types import from_arrow_schema

    for by_arrow, contract in (
        (arrow.TRANSACTIONS, schemas.TRANSACTIONS),
        (customers.CUSTOMERS_ARROW, schemas.CUSTOMERS),
        (customers.ACCOUNTS_ARROW, schemas.ACCOUNTS),
        (ads.SCHEMA, schemas.AD_EVENTS),
    ):
        columns = spark.createDataFrame([], contract).schema.simpleString()
        assert from_arrow_schema(by_arrow).simpleString() == columns


@pytest.mark.spark
def test_a_restart_from_the_checkpoint_at_another_rate_neither_loses_nor_repeats(spark, prepare, tmp_path):
    register(spark)
    path = str(prepare(*many(1000)).path)
    first = {"rate": "0.001", "origin": str(time.time() - 400_000), "maxRowsPerTrigger": "150"}
    taken = []
    for options in (first, {"rate": "0"}):
        frame = spark.readStream.format("ledger").options(path=path, **options).load()
        taken += [progress.numInputRows for progress in to_files(frame, tmp_path)]

    written = duckdb.sql(f"SELECT transaction_id FROM '{tmp_path}/out/*.parquet' ORDER BY 1").fetchall()
    assert taken == [150, 150, 100, 600]
    assert written == sorted((f"T{row}",) for row in range(1000))
