from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from statistics import median

import pyarrow as pa
import pytest

from ledgerops.ledger.jobs.spending_profile import CASH, JOB, profile
from tests.ledger.jobs.feed import dropped, transaction
from tests.ledger.jobs.oracle import batches_of, disordered, rows_of
from tests.tables import cases

LATENESS = timedelta(minutes=10)
LISTS = pa.list_(pa.decimal128(18, 2))


def made(*amounts, cash=None):
    lists = [[Decimal(one) for one in each] for each in amounts]
    in_cash = lists if cash is None else [[Decimal(one) for one in each] for each in cash]
    return [tuple(row.values()) for row in profile(pa.array(lists, LISTS), pa.array(in_cash, LISTS)).to_pylist()]


@cases(
    "amounts, expected",
    ("one", ["7.01"], (1, "7.01", "7.010", "7.01", 1.0)),
    ("half a cent in the middle", ["9", "0.01"], (2, "9.01", "4.505", "9.00", 1.0)),
    ("odd and out of order", ["3", "1", "2"], (3, "6.00", "2.000", "3.00", 1.0)),
    ("a total of nothing has no shares", ["0", "0"], (2, "0.00", "0.000", "0.00", None)),
    ("below zero", ["-5", "-1", "-2", "-2"], (4, "-10.00", "-2.000", "-1.00", 1.0)),
    ("large", ["9999999999999.99"] * 3, (3, "29999999999999.97", "9999999999999.990", "9999999999999.99", 1.0)),
)
def test_a_profile_is_exact(amounts, expected):
    found = made(["1"], amounts, ["2", "3"])
    assert found[1] == tuple(Decimal(one) if isinstance(one, str) else one for one in expected)
    assert [row[0] for row in found] == [1, len(amounts), 2]


def test_the_share_of_cash_is_that_of_the_amounts():
    assert [row[-1] for row in made(["1", "3"], ["5"], ["2", "2"], cash=[["1"], [], ["2", "2"]])] == [0.25, 0.0, 1.0]
    assert made() == []


@pytest.mark.spark
def test_profiles_are_those_of_debits_whose_day_was_open(feed):
    case = feed(JOB)
    runs = disordered()
    for number, row in enumerate(rows_of(runs)):
        row["operation"] = (CASH, "Remittance to Another Bank", None)[number % 3]
        row["amount"] = None if number % 13 == 0 else row["amount"]
    runs[0][0] += [transaction("all cash", "21:00", "C8", type="Debit", operation=CASH)]
    progress = case.run_each(runs, lateness="10 minutes")

    found = case.rows()

    def counts(row):
        return row["type"] == "Debit" and row["amount"] is not None

    batches = batches_of([[[row for row in batch if counts(row)] for batch in run] for run in runs], LATENESS)
    days = defaultdict(list)
    for batch in batches:
        for row in batch.rows:
            day = row["event_time"].replace(hour=0, minute=0, second=0, microsecond=0)
            if batch.late < day + timedelta(days=1) <= batches[-1].evict:
                days[day, day + timedelta(days=1), row["customer_id"]].append(row)
    expected = []
    for key, rows in days.items():
        amounts = [row["amount"] for row in rows]
        cash = sum(row["amount"] for row in rows if row["operation"] == CASH)
        share = pytest.approx(float(cash / sum(amounts)))
        expected.append((*key, len(rows), sum(amounts), median(amounts), max(amounts), share))
    assert found == sorted(expected, key=lambda row: row[:3])
    assert len(found) > 8
    assert dropped(progress) > 0
