"""Records as they may come, each against what becomes of it."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from ledgerops.ledger.plan.poison import MAX_VALUE_BYTES, REASONS
from ledgerops.ledger.plan.schemas import TRANSACTIONS, columns_of
from ledgerops.ledger.sources import decoding, plain_records

pytestmark = pytest.mark.spark

GOOD = json.loads(
    '{"transaction_id": "T1", "account_id": "A1", "customer_id": "C1", "event_time": "2024-03-01T10:00:00.123456Z", '
    '"type": "Credit", "operation": "Credit in Cash", "amount": 12.5, "balance": 100}'
)
CUSTOMER = json.loads(
    '{"customer_id": "C1", "sex": "Female", "first": "Ada", "last": "Smith", "email": "a@example.com", '
    '"city": "Rome", "state": "NY", "district_id": 7, "updated_at": "2013-01-01T00:00:00Z"}'
)
RECORD = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
AT = datetime(2024, 3, 1, tzinfo=UTC)
COLUMNS = columns_of(TRANSACTIONS)


def text(**changed):
    """The good transaction with some fields changed; `...` leaves one out, bytes stand as they are."""
    fields = {name: value for name, value in {**GOOD, **changed}.items() if value is not ...}
    raw = {name: value for name, value in fields.items() if isinstance(value, bytes)}
    dumped = json.dumps({name: f"<{name}>" if name in raw else value for name, value in fields.items()})
    for name, value in raw.items():
        dumped = dumped.replace(f'"<{name}>"', value.decode())
    return dumped.encode()


# what comes -> the changed columns of its row
TAKEN = {
    "as agreed": (text(), {}),
    "no operation": (text(operation=None), {"operation": None}),
    "an operation left out": (text(operation=...), {"operation": None}),
    "an unknown field": (text(branch={"city": "Rome"}), {}),
    "spaces around it": (b"  " + text() + b" \r\n", {}),
    "other letters": (text(operation='Výběr ☕ " \\'), {"operation": 'Výběr ☕ " \\'}),
    "an empty text": (text(account_id=""), {"account_id": ""}),
    "two decimals": (text(amount=b"12.50"), {}),
    "trailing zeros": (text(amount=b"12.50000"), {}),
    "zeros only": (text(amount=b"10.00"), {"amount": Decimal("10.00")}),
    "hundreds": (text(amount=b"100.00"), {"amount": Decimal("100.00")}),
    "below zero": (text(amount=b"-0.01"), {"amount": Decimal("-0.01")}),
    "the largest amount": (text(amount=b"9999999999999999.99"), {"amount": Decimal("9999999999999999.99")}),
    "cents that a float has not": (text(amount=b"70368744177664.01"), {"amount": Decimal("70368744177664.01")}),
    "another zone": (text(event_time="2024-03-01T12:00:00.123456+02:00"), {}),
    "whole seconds": (text(event_time="2024-03-01T10:00:00Z"), {"event_time": datetime(2024, 3, 1, 10, tzinfo=UTC)}),
    "nanoseconds": (text(event_time="2024-03-01T10:00:00.123456789Z"), {}),
    "as long as may be": (text() + b" " * (MAX_VALUE_BYTES - len(text())), {}),
    "a field twice": (text()[:-1] + b', "type": "Debit"}', {"type": "Debit"}),
}
NOT_JSON = {
    "cut off": text()[:-30],
    "no JSON": b"hello",
    "nothing": b"",
    "two objects": text() + text(),
    "two objects with a comma": text() + b"," + text(),
    "words behind it": text() + b" more",
    "not UTF-8": text().replace(b"Cash", b"C\xe9sh"),
    "single quotes": text().replace(b'"', b"'"),
    "not a number": text(amount=b"NaN"),
    "a list": b"[" + text() + b"]",
    "a number alone": b"42",
    "null alone": b"null",
}
# what comes -> the field that lacks
MISSING = {
    "an empty object": (b"{}", "transaction_id"),
    "a field left out": (text(amount=...), "amount"),
    "a field of null": (text(customer_id=None), "customer_id"),
    "another case": (text(amount=...)[:-1] + b', "Amount": 1}', "amount"),
    "missing and wrong": (text(amount="x", balance=...), "balance"),
}
AMOUNT, INSTANT = "no amount with at most two decimals", "no instant like 2024-03-01T10:00:00Z"
# what comes -> what is wrong with it
WRONG = {
    "a word for an amount": (text(amount="much"), f"amount is {AMOUNT}: string"),
    "an amount in quotes": (text(amount="12.50"), f"amount is {AMOUNT}: string"),
    "a third decimal": (text(amount=b"12.505"), f"amount is {AMOUNT}: decimal(5,3)"),
    "an exponent": (text(amount=b"1e2"), f"amount is {AMOUNT}: double"),
    "too large an amount": (text(amount=b"10000000000000000.00"), f"amount is {AMOUNT}: decimal(17,0)"),
    "a number for a text": (text(customer_id=7), "customer_id is no text: bigint"),
    "an object for a text": (text(type={"a": "b"}), "type is no text: object<a: string>"),
    "a truth for an operation": (text(operation=True), "operation is no text: boolean"),
    "a day": (text(event_time="2024-03-01"), f"event_time is {INSTANT}: string"),
    "a time without a zone": (text(event_time="2024-03-01T10:00:00.123"), f"event_time is {INSTANT}: string"),
    "a day that there is not": (text(event_time="2024-02-30T10:00:00Z"), f"event_time is {INSTANT}: string"),
    "milliseconds": (text(event_time=1_709_287_200_000), f"event_time is {INSTANT}: bigint"),
}
TOO_LONG = text() + b" " * (MAX_VALUE_BYTES + 1 - len(text()))
# what comes -> reason and detail
REFUSED = {
    "no value": (None, "tombstone", "no value"),
    "a byte too long": (TOO_LONG, "oversized", "65537 bytes, of at most 65536"),
    **{case: (value, "invalid_json", "not one JSON object in UTF-8") for case, value in NOT_JSON.items()},
    **{case: (value, "missing_field", f"no {field}") for case, (value, field) in MISSING.items()},
    **{case: (value, "wrong_type", detail) for case, (value, detail) in WRONG.items()},
}


def written(value):
    """The record as our own writers write it, as far as it can be: without blanks, and with two decimals."""
    if value is None or len(value) >= MAX_VALUE_BYTES:
        return value
    short = value.replace(b'": ', b'":').replace(b', "', b',"')
    return short.replace(b'":12.5,', b'":12.50,').replace(b'":100}', b'":100.00}')


# how records are written, and the session's time zone
FORMS = {
    "with blanks": (lambda value: value, "UTC"),
    "as our writers write": (written, "UTC"),
    "in another zone": (written, "America/New_York"),
}


def row(**changed):
    moment = datetime(2024, 3, 1, 10, 0, 0, 123456, UTC)
    return {**GOOD, "event_time": moment, "amount": Decimal("12.50"), "balance": Decimal("100.00"), **changed}


def records_of(spark, values, topic="transactions"):
    """These values, whose offsets are their numbers."""
    return spark.createDataFrame([(b"C1", value, topic, 3, n, AT) for n, value in enumerate(values)], RECORD)


def rows_by_offset(records):
    """As decoding.rows, with the column `offset`."""
    judged = records.select("offset", decoding._judged(COLUMNS, keyed=True).alias("judged"))
    return judged.where("judged.reason IS NULL").select(
        "offset", *plain_records.values(COLUMNS, judged["judged.pieces"], decoding.in_utc(records))
    )


@pytest.fixture(scope="module", params=FORMS)
def decoded(spark, request):
    """Rows and rejects by offset, which is the number of the case; and the form of the values."""
    form, zone = FORMS[request.param]
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        records = records_of(spark, [form(value) for value, *_ in [*TAKEN.values(), *REFUSED.values()]])
        found = rows_by_offset(records).selectExpr("*", "unix_micros(event_time) micros").collect()
        rejects = {each.offset: each for each in decoding.rejects(records, "transactions", True).collect()}
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    rows = {each.offset: each.asDict() for each in found}
    for each in rows.values():
        each["event_time"] = datetime.fromtimestamp(each.pop("micros") / 1e6, UTC)
        each.pop("offset")
    return rows, rejects, form


@pytest.mark.parametrize("case", TAKEN)
def test_a_good_record_is_a_row(decoded, case):
    rows, rejects, _ = decoded
    number = list(TAKEN).index(case)
    assert rejects.get(number) is None
    assert rows[number] == row(**TAKEN[case][1])


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_record_is_a_reject_with_its_reason(decoded, case):
    rows, rejects, form = decoded
    number = len(TAKEN) + list(REFUSED).index(case)
    value, reason, detail = REFUSED[case]

    assert number not in rows
    reject = rejects[number]
    assert (reject.reason, reject.detail, reject.topic, reject.partition) == (reason, detail, "transactions", 3)
    assert reject.value == form(value)


def test_what_our_writers_write_is_cut_and_not_parsed(spark):
    records = records_of(spark, [written(text()), written(text(operation=None))])
    assert records.where(plain_records.is_plain(COLUMNS, keyed=True)).count() == 2
    found = decoding.rows(records, "transactions", True, "cut").collect()
    assert [each.operation for each in found] == ["Credit in Cash", None]


def count_plain(spark, values):
    """How many records need not be parsed. The rows of all are those that Spark's typed from_json reads."""
    from pyspark.sql import functions as F

    records = records_of(spark, values)
    value = F.when(F.is_valid_utf8("value"), F.col("value").cast("string"))
    parsed = decoding._parsed(value, COLUMNS, keyed=True, detailed=False)["reason"].alias("reason")
    typed = F.from_json(value, TRANSACTIONS).alias("row")
    expected = records.select("offset", parsed, typed).where("reason IS NULL").select("offset", "row.*")
    found = rows_by_offset(records)

    assert found.exceptAll(expected).collect() == []
    assert expected.exceptAll(found).collect() == []
    return records.where(plain_records.is_plain(COLUMNS, keyed=True)).count()


def test_a_record_that_is_cut_gives_the_row_that_parsing_gives(spark):
    """Each byte of a good record is replaced, removed and preceded by bytes that mean something in JSON."""
    good = [written(text()), written(text(operation=None)), written(text(operation="é☕", amount=b"-0.01"))]
    bytes_ = [b"", *(bytes([each]) for each in b'"\\,:{}[]0-.eE+ \t\n\x00\x7f\x80\xc3nZT')]
    places = [(value[:at], value[at:], byte) for value in good for at in range(len(value) + 1) for byte in bytes_]
    changed = {before + byte + after[gone:] for before, after, byte in places for gone in (0, 1)}
    assert count_plain(spark, sorted(changed)) > len(changed) // 20  # what is cut is tried, and what is not


def test_an_instant_or_a_number_that_is_cut_is_what_parsing_makes_of_it(spark):
    years = (0, 1900, 2000, 2023, 2024)
    days = [f"{year:04}-{month:02}-{day:02}" for year in years for month in range(14) for day in range(33)]
    times = [f"{hour:02}:00:00" for hour in range(26)]
    times += ["10:59:60", "10:60:00", "10:00:59.1", "10:00:00.", "10:00:00.1234567"]
    zones = ["", "Z", "z", "+00:00", "-00:00", "+17:59", "+18:00", "-18:01", "+19:00", "+02:60", "+0200", "+02", "UTC"]
    instants = [f"{day}T10:00:00Z" for day in days] + [f"2024-03-01T{time}Z" for time in times]
    instants += [f"2024-03-01T10:00:00{zone}" for zone in zones]
    numbers = b"0 -0 00 1 -1.5 +1 .5 1. 1.50 -0.00 1.005 01.00 1.5e1".split()
    numbers += [b"9" * digits + end for digits in (15, 16, 17) for end in (b"", b".9", b".99", b".990", b".999")]
    values = [written(text(event_time=instant)) for instant in instants]
    values += [written(text(amount=number)) for number in numbers]

    assert len(values) * 3 // 4 < count_plain(spark, values) < len(values)


def test_every_reason_but_that_of_the_key_has_a_case():
    assert {reason for _, reason, _ in REFUSED.values()} | {"null_key"} == set(REASONS)


def test_a_record_without_a_key_is_a_reject_only_where_there_are_keys(spark):
    records = spark.createDataFrame([(None, text(), "transactions", 0, 0, AT)], RECORD)
    [reject] = decoding.rejects(records, "transactions", True).collect()
    assert (reject.reason, reject.detail) == ("null_key", "no key")
    assert decoding.rejects(records, "transactions", False).count() == 0


def test_customers_have_whole_numbers_and_every_field(spark):
    wrong = [{**CUSTOMER, "district_id": value} for value in ("7", 7.5, 2**31, True)]
    values = [json.dumps(value).encode() for value in (CUSTOMER, {**CUSTOMER, "sex": None}, *wrong)]
    records = records_of(spark, values, "customers")

    assert [each.district_id for each in decoding.rows(records, "customers", True, "x").collect()] == [7]
    found = sorted((each.offset, each.reason) for each in decoding.rejects(records, "customers", True).collect())
    assert found == [(1, "missing_field"), *((n, "wrong_type") for n in range(2, 6))]


def test_rows_have_the_columns_of_the_table(spark):
    from pyspark.sql.types import StructType

    from ledgerops.ledger.plan.schemas import TABLES

    records = spark.createDataFrame([], RECORD)
    found = {table: decoding.rows(records, table, True, table) for table in ("transactions", "customers", "ad_events")}
    found["rejects"] = decoding.rejects(records, "transactions", True)
    for table, frame in found.items():
        assert frame.schema.simpleString() == StructType.fromDDL(TABLES[table]).simpleString()
