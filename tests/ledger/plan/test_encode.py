"""JSON values made by the column equal what the standard library makes of each row."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from ledgerops.ledger.plan.encode import json_keys, json_values
from ledgerops.ledger.plan.generate import Generator
from ledgerops.ledger.plan.plan import load_plan


def plainly(row):
    """The same row by the standard library, amounts as text of two decimals made numbers afterwards."""

    def text(value):
        if isinstance(value, Decimal):
            return f"{value:f}"
        if isinstance(value, datetime):
            return json.dumps(value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        return json.dumps(value.isoformat() if isinstance(value, date) else value, ensure_ascii=False)

    return "{" + ",".join(f'"{name}":{text(value)}' for name, value in row.items()) + "}"


def encoded(batch):
    return [value.decode() for value in json_values(batch).to_pylist()]


def test_generated_transactions_are_encoded_as_row_by_row():
    [batch] = Generator(load_plan("default"), 1_700_000_000.0).batches(2, 0, 3_000)

    assert encoded(batch) == [plainly(row) for row in batch.to_pylist()]
    assert encoded(batch)[0] == (
        '{"transaction_id":"T0000000002","account_id":"A00002444","customer_id":"C00002444",'
        '"event_time":"2023-11-14T22:13:20.005000Z","type":"Debit","operation":"Withdrawal in Cash",'
        '"amount":473.20,"balance":55173.46}'
    )


ODD = ["back\\slash", "two\nlines", "nul\x00", "tab\t", "Dvořák", "\U0001f600", "\x7f\u2028"]


@pytest.mark.parametrize("text", [*ODD, 'a "quoted" word', "", None])
def test_any_text_comes_back_as_it_was(text):
    batch = pa.record_batch({"a": pa.array(["plain", text, "x"]), "b": pa.array([text, text, "y"])})
    assert [json.loads(value) for value in encoded(batch)] == batch.to_pylist()


def test_every_type_of_a_table_has_its_form():
    batch = pa.record_batch(
        {
            "id": pa.array(["A1", None]),
            "district_id": pa.array([7, None], pa.int32()),
            "opened_on": pa.array([date(2013, 1, 5), None]),
            "at": pa.array([datetime(2024, 3, 1, 10, 0, 0, 5, UTC), None], pa.timestamp("us", "UTC")),
            "amount": pa.array([Decimal("-0.05"), None], pa.decimal128(18, 2)),
            "known": pa.array([True, None]),
        }
    )

    assert encoded(batch) == [
        '{"id":"A1","district_id":7,"opened_on":"2013-01-05","at":"2024-03-01T10:00:00.000005Z","amount":-0.05,'
        '"known":true}',
        '{"id":null,"district_id":null,"opened_on":null,"at":null,"amount":null,"known":null}',
    ]


def test_a_part_of_a_batch_is_encoded_as_that_part():
    [batch] = Generator(load_plan("default"), 0.0).batches(0, 0, 100)
    assert encoded(batch.slice(40, 7)) == encoded(batch)[40:47]
    assert encoded(batch.slice(40, 0)) == []


def test_keys_are_bytes_and_an_absent_one_stays_absent():
    assert json_keys(pa.array(["C1", None])).to_pylist() == [b"C1", None]
