from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ledgerops.errors import UserError
from ledgerops.ledger.sources import arrow_file, replay
from ledgerops.ledger.sources.arrow_file import FileRows
from ledgerops.ledger.sources.csv_file import rejected
from ledgerops.ledger.sources.spark_source import LedgerStreamReader, Options, register
from tests.refusals import refusal_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEADER = ",".join(replay.COLUMNS)
GOOD = "T1,A1,Credit,Credit in Cash,700.00,1700.05,,2013-01-01T09:19:27,C1"


def csv_file(folder: Path, *lines: str, header: str = HEADER) -> Path:
    path = folder / "transactions.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def many(count: int) -> list[str]:
    start = datetime(2013, 1, 1)
    return [
        f"T{row},A{row % 37},Debit,,{row}.01,0.00,,{(start + timedelta(seconds=row)).isoformat()},C{row % 37}"
        for row in range(count)
    ]


def rows(prepared: arrow_file.Prepared) -> list[dict[str, Any]]:
    found, counts = FileRows(prepared.path), enumerate(prepared.counts)
    return pa.Table.from_batches(
        batch for partition, count in counts if count for batch in found.batches(partition, 0, count)
    ).to_pylist()


def test_a_good_row_keeps_its_values_exactly(tmp_path: Path) -> None:
    prepared = replay.prepare(csv_file(tmp_path, GOOD), tmp_path / "work")
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


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("T2,A1,Credit", "3 columns, expected 9", id="too few columns"),
        pytest.param(GOOD + ",more", "10 columns, expected 9", id="too many columns"),
        pytest.param(HEADER, "repeated header", id="repeated header"),
        pytest.param(GOOD.replace("T1", ""), "no trans_id", id="no transaction id"),
        pytest.param(GOOD.replace("A1", " "), "no account_id", id="blank account id"),
        pytest.param(GOOD.replace("C1", ""), "no customer_id", id="no customer id"),
        pytest.param(GOOD.replace("Credit,", "Loan,"), "type 'Loan' is not Credit or Debit", id="unknown type"),
        pytest.param(
            GOOD.replace("700.00", "seven"), "amount 'seven' is not an amount with at most two decimals", id="word"
        ),
        pytest.param(
            GOOD.replace("700.00", "7.005"),
            "amount '7.005' is not an amount with at most two decimals",
            id="thirds",
        ),
        pytest.param(
            GOOD.replace("700.00", "NaN"), "amount 'NaN' is not an amount with at most two decimals", id="not a number"
        ),
        pytest.param(
            GOOD.replace("700.00", "1e5"), "amount '1e5' is not an amount with at most two decimals", id="exponent"
        ),
        pytest.param(
            GOOD.replace("1700.05", "10000000000000000"),
            "balance '10000000000000000' is not an amount with at most two decimals",
            id="more digits than the column holds",
        ),
        pytest.param(
            GOOD.replace("-01T", "-32T"), "fulldatewithtime '2013-01-32T09:19:27' is not a date and time", id="day 32"
        ),
        pytest.param(
            GOOD.replace("T09:19:27", ""), "fulldatewithtime '2013-01-01' is not a date and time", id="date alone"
        ),
        pytest.param(GOOD.replace("Credit in", '"Credit in'), "unexpected end of data", id="stray quote"),
    ],
)
def test_a_bad_row_is_kept_aside_with_its_line_and_reason(tmp_path: Path, line: str, reason: str) -> None:
    prepared = replay.prepare(csv_file(tmp_path, GOOD, line, GOOD), tmp_path / "work")
    assert (prepared.rows, prepared.rejected) == (2, 1)
    kept = [{name: entry[name] for name in ("file", "line", "reason", "text")} for entry in rejected(tmp_path / "work")]
    assert kept == [{"file": "transactions.csv", "line": 3, "reason": reason, "text": line}]


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [
        pytest.param(GOOD.replace("700.00", "-7.5"), "amount", Decimal("-7.50"), id="negative with one decimal"),
        pytest.param(GOOD.replace("700.00", "7"), "amount", Decimal("7.00"), id="whole number"),
        pytest.param(
            GOOD.replace("1700.05", "9999999999999999.99"), "balance", Decimal("9999999999999999.99"), id="the largest"
        ),
        pytest.param(GOOD.replace("Credit in Cash", ""), "operation", None, id="no operation"),
        pytest.param(GOOD.replace("Credit in Cash", '"in, cash"'), "operation", "in, cash", id="quoted comma"),
        pytest.param(
            GOOD.replace("27,C1", "27+02:00,C1"), "event_time", datetime(2013, 1, 1, 7, 19, 27, tzinfo=UTC), id="offset"
        ),
    ],
)
def test_an_unusual_good_row_is_taken(tmp_path: Path, line: str, column: str, value: object) -> None:
    prepared = replay.prepare(csv_file(tmp_path, line), tmp_path / "work")
    assert rows(prepared)[0][column] == value
    assert rejected(tmp_path / "work") == []


def test_bytes_that_are_not_utf8_spoil_only_their_row(tmp_path: Path) -> None:
    path = csv_file(tmp_path, GOOD)
    path.write_bytes(path.read_bytes() + GOOD.encode().replace(b"Cash", b"\xff") + b"\r\n\r\n" + GOOD.encode())
    prepared = replay.prepare(path, tmp_path / "work")
    assert (prepared.rows, prepared.rejected) == (2, 1)
    assert rejected(tmp_path / "work")[0]["reason"] == "not UTF-8"


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    assert refusal_of(replay.prepare, tmp_path / "no.csv", tmp_path) == (
        f"cannot read {tmp_path / 'no.csv'}: no such file or directory; "
        "LEDGEROPS_DATA must name the folder that holds no.csv"
    )


@pytest.mark.parametrize(
    ("header", "message"),
    [
        pytest.param("", f"no column {', '.join(replay.COLUMNS)}; expected {HEADER}", id="empty file"),
        pytest.param(HEADER.replace("amount", "sum"), f"no column amount; expected {HEADER}", id="renamed column"),
        pytest.param(HEADER + ",amount", "column amount occurs more than once", id="column twice"),
        pytest.param('"trans_id', f"unexpected end of data; expected {HEADER}", id="stray quote"),
    ],
)
def test_a_wrong_header_is_one_line(tmp_path: Path, header: str, message: str) -> None:
    path = csv_file(tmp_path, GOOD, header=header)
    assert refusal_of(replay.prepare, path, tmp_path / "work") == f"cannot read {path}:1: {message}"


def test_columns_may_come_in_another_order_with_a_byte_order_mark(tmp_path: Path) -> None:
    names, values = HEADER.split(","), GOOD.split(",")
    path = csv_file(tmp_path, ",".join(values[::-1]), header="\ufeff" + ",".join(names[::-1]))
    assert rows(replay.prepare(path, tmp_path / "work"))[0]["transaction_id"] == "T1"


def test_a_file_without_one_good_row_is_refused_and_its_rows_kept(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no usable row in transactions\.csv: 1 rejected, see .*rejects\.jsonl"):
        replay.prepare(csv_file(tmp_path, "bad"), tmp_path / "work")
    assert len(rejected(tmp_path / "work")) == 1


def test_a_second_run_reuses_the_prepared_file_and_a_changed_one_does_not(tmp_path: Path) -> None:
    first = replay.prepare(csv_file(tmp_path, GOOD, "bad"), tmp_path / "work")
    written = first.path.stat().st_mtime_ns
    again = replay.prepare(tmp_path / "transactions.csv", tmp_path / "work")
    assert again == first
    assert again.path.stat().st_mtime_ns == written
    changed = replay.prepare(csv_file(tmp_path, GOOD), tmp_path / "work")
    assert changed.path != first.path
    assert rejected(tmp_path / "work") == []


def test_rejects_come_back_when_they_were_deleted(tmp_path: Path) -> None:
    path = csv_file(tmp_path, GOOD, "bad")
    replay.prepare(path, tmp_path / "work")
    (tmp_path / "work" / "rejects.jsonl").unlink()
    replay.prepare(path, tmp_path / "work")
    assert len(rejected(tmp_path / "work")) == 1


def test_file_order_is_kept_within_a_partition_and_an_account_stays_in_one(tmp_path: Path) -> None:
    prepared = replay.prepare(csv_file(tmp_path, *many(1000)), tmp_path / "work")
    positions = FileRows(prepared.path).positions
    assert [len(each) for each in positions] == list(prepared.counts)
    ids = [int(row["transaction_id"][1:]) for row in rows(prepared)]
    assert ids == np.concatenate(positions).tolist()
    assert sorted(ids) == list(range(1000))
    assert all((np.diff(each) > 0).all() for each in positions)


def test_batches_hold_at_most_65536_rows(tmp_path: Path) -> None:
    table = pa.table({"n": np.arange(150_000)})
    prepared = arrow_file.keep(tmp_path, "n.csv", "x", 1, lambda: (table, [0] * 150_000, []))
    sizes = [batch.num_rows for batch in FileRows(prepared.path).batches(0, 10, 150_000)]
    assert sum(sizes) == 149_990
    assert max(sizes) <= 65_536


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[int]], Path]:
    """Keeps a file whose row n, with the number n, is in partition `partition[n]` of five."""
    folder = tmp_path_factory.mktemp("kept")

    def keep(partition: list[int]) -> Path:
        table = pa.table({"n": pa.array(range(len(partition)), pa.int64())})
        name = "-" + "".join(map(str, partition))
        return arrow_file.keep(folder, "n.csv", name, 5, lambda: (table, partition, [])).path

    return keep


def reader(path: Path, **options: object) -> LedgerStreamReader:
    return LedgerStreamReader(Options.of({"path": str(path), **{name: str(value) for name, value in options.items()}}))


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=60),
    st.lists(st.integers(1, 20), min_size=1, max_size=80),
    st.data(),
)
def test_any_sequence_of_limits_gives_every_row_once_and_in_file_order(
    kept: Callable[[list[int]], Path], partition: list[int], limits: list[int], data: st.DataObject
) -> None:
    path, seen = kept(partition), list[int]()
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


def test_offsets_of_another_file_are_refused(kept: Callable[[list[int]], Path]) -> None:
    given = {"transactions": {"0": 0, "1": 0, "2": 1, "3": 0, "4": 0}}
    with pytest.raises(UserError) as caught:
        reader(kept([0, 1, 2])).latestOffset(given, ReadAllAvailable())
    assert str(caught.value) == (
        f"the offsets {json.dumps(given)} do not belong to this file: the checkpoint was written with another file; "
        "use that file, or start over"
    )


def test_offsets_stay_valid_when_the_file_grows_at_its_end(kept: Callable[[list[int]], Path]) -> None:
    small, grown = reader(kept([0, 1, 2])), reader(kept([0, 1, 2, 1, 0]))
    assert grown.count_at(small.offsets_at(3)) == 3


def test_a_file_needs_no_origin_and_a_limit_only_shortens_it(kept: Callable[[list[int]], Path]) -> None:
    path = kept([0] * 10)
    for limit, rows in ((4, 4), (99, 10)):
        end = reader(path, limit=limit).latestOffset(reader(path).initialOffset(), ReadAllAvailable())
        assert sum(end["transactions"].values()) == rows


@pytest.mark.parametrize(
    ("rate", "seconds", "expected"),
    [(10, 2.55, 25), (10, 1e9, 100), (10, -5, 0), (0, 0, 100), (0, -5, 100), (0.5, 3, 1)],
)
def test_rows_arrive_at_the_rate(kept: Callable[[list[int]], Path], rate: float, seconds: float, expected: int) -> None:
    assert FileRows(kept([0] * 100), rate).due(seconds) == expected


def stream(spark: SparkSession, prepared: arrow_file.Prepared, folder: Path, **options: object) -> list[dict[str, Any]]:
    """What a query with Trigger.AvailableNow adds to `folder`, and its progress records."""
    register(spark)
    given = {"path": str(prepared.path), **{name: str(value) for name, value in options.items()}}
    query = (
        spark.readStream.format("ledger")
        .options(**given)
        .load()
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [json.loads(progress.json) for progress in query.recentProgress]


def written(folder: Path) -> list[str]:
    found = duckdb.sql(f"SELECT transaction_id FROM '{folder}/out/*.parquet'").fetchall()
    return sorted((row[0] for row in found), key=lambda name: int(name[1:]))


@pytest.mark.spark
def test_the_columns_are_those_of_the_contract(spark: SparkSession) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema

    from ledgerops.ledger.plan import arrow, schemas
    from ledgerops.ledger.sources import customers

    for by_arrow, contract in (
        (arrow.TRANSACTIONS, schemas.TRANSACTIONS),
        (customers.CUSTOMERS_ARROW, schemas.CUSTOMERS),
        (customers.ACCOUNTS_ARROW, schemas.ACCOUNTS),
    ):
        columns = spark.createDataFrame([], contract).schema.simpleString()
        assert from_arrow_schema(by_arrow).simpleString() == columns


@pytest.mark.spark
def test_a_restart_from_the_checkpoint_neither_loses_nor_repeats(spark: SparkSession, tmp_path: Path) -> None:
    prepared = replay.prepare(csv_file(tmp_path, *many(1000)), tmp_path / "work")
    first = stream(spark, prepared, tmp_path, rate=1e-3, origin=time.time() - 400_000, maxRowsPerTrigger=150)
    assert [progress["numInputRows"] for progress in first] == [150, 150, 100]
    assert written(tmp_path) == [f"T{row}" for row in range(400)]
    second = stream(spark, prepared, tmp_path, rate=0)
    assert sum(progress["numInputRows"] for progress in second) == 600
    assert written(tmp_path) == [f"T{row}" for row in range(1000)]
    [source] = second[0]["sources"]
    assert source["latestOffset"] == {"transactions": {str(p): n for p, n in enumerate(prepared.counts)}}
    assert source["startOffset"]["transactions"] == first[-1]["sources"][0]["endOffset"]["transactions"]


@pytest.mark.spark
def test_the_real_file_has_the_count_and_sums_that_duckdb_computes(
    spark: SparkSession, tmp_path: Path, data_dir: Path
) -> None:
    prepared = replay.prepare(data_dir / "transactions.csv", tmp_path)
    assert prepared.rejected == 0
    register(spark)
    rows = spark.read.format("ledger").option("path", str(prepared.path)).load()
    rows.createOrReplaceTempView("replayed")
    got = spark.sql(
        "SELECT count(*), count(DISTINCT transaction_id), sum(amount), sum(balance), count(operation), "
        "unix_seconds(min(event_time)), unix_seconds(max(event_time)) FROM replayed"
    ).first()
    [want] = duckdb.sql(
        "SELECT count(*), count(DISTINCT trans_id), sum(amount::DECIMAL(18,2)), sum(balance::DECIMAL(18,2)), "
        "count(operation), epoch(min(fulldatewithtime::TIMESTAMP))::BIGINT, "
        "epoch(max(fulldatewithtime::TIMESTAMP))::BIGINT "
        f"FROM read_csv('{data_dir}/transactions.csv', all_varchar=true)"
    ).fetchall()
    assert tuple(got) == want
