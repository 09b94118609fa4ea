"""The generated ledger: the same rows in any split, and the manifest that a verifier trusts."""

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerops.ledger.plan import arrow
from ledgerops.ledger.plan.generate import Generator, account_ids, customer_ids
from ledgerops.ledger.plan.partitioning import Layout
from ledgerops.ledger.plan.plan import parse_plan
from tests.tables import cases

ORIGIN = 1_700_000_000.0
PLAN = """
seed: 3
start: 2026-01-01T00:00:00Z
phases: [{shape: ramp, from: 10, to: 1000, duration: 60}]
keys: {customers: 40, accounts: 50, distribution: zipf, exponent: 1.1}
partitions: {count: 4, idle: [0], pinned: {partition: 2, share: 0.6}}
disorder: {late: {share: 0.1, low: 5, high: 50}}
duplicates: {share: 0.2, within: 3s}
"""


def rows(plan, partition, start, end):
    return pa.Table.from_batches(Generator(plan, ORIGIN).batches(partition, start, end), arrow.TRANSACTIONS)


def prefix(plan, count):
    parts = [rows(plan, p, 0, head) for p, head in enumerate(Layout(plan.partitions).heads(count))]
    return pa.concat_tables(parts).to_pylist()


@given(st.sampled_from([1, 2, 3]), st.lists(st.integers(0, 40_000), min_size=2, max_size=6))
@settings(max_examples=30, deadline=None)
def test_any_split_of_a_range_gives_the_same_rows(partition, cuts):
    plan = parse_plan(PLAN)
    cuts = sorted(cuts)
    parts = [rows(plan, partition, low, high) for low, high in pairwise(cuts)]
    assert pa.concat_tables(parts).equals(rows(plan, partition, cuts[0], cuts[-1]))


def test_another_seed_gives_other_rows():
    one, other = parse_plan(PLAN), parse_plan(PLAN.replace("seed: 3", "seed: 4"))
    assert not rows(one, 1, 0, 100).equals(rows(other, 1, 0, 100))


def test_the_stream_of_a_seed_stays_as_it_is():
    first = rows(parse_plan(PLAN), 2, 0, 3).to_pylist()

    assert [(r["transaction_id"], r["account_id"], r["customer_id"], r["type"], r["amount"]) for r in first] == [
        ("T0000000000", "A00000003", "C00000003", "Credit", Decimal("4772.15")),
        ("T0000000003", "A00000018", "C00000018", "Credit", Decimal("3696.37")),
        ("T0000000004", "A00000003", "C00000003", "Debit", Decimal("786.99")),
    ]


def test_a_duplicate_repeats_every_column_of_an_earlier_record():
    plan = parse_plan(PLAN)
    generator = Generator(plan, ORIGIN)
    records = np.arange(20_000)
    carried = generator.carried(records)

    assert np.all(carried <= records)
    assert np.all(carried[carried] == carried)
    copies = np.flatnonzero(carried != records)
    assert 0.19 < len(copies) / len(records) < 0.21
    age = plan.schedule.due_time(copies) - plan.schedule.due_time(carried[copies])
    assert age.min() > 0
    assert np.mean(age <= 3.2) > 0.75  # the others are copies of copies
    assert age.max() < 10 * 3


def test_without_duplicates_every_id_is_there_once():
    plan = parse_plan("phases: [{shape: constant, rate: 100}]")
    found = prefix(plan, 1000)
    assert sorted(row["transaction_id"] for row in found) == [f"T{n:010}" for n in range(1000)]


@pytest.mark.parametrize(("start", "first"), [("2026-01-01T00:00:00Z", 1767225600), ("now", ORIGIN)])
def test_event_times_are_the_schedule_from_the_plans_start_or_the_origin(start, first):
    plan = parse_plan(f"start: {start}\nphases: [{{shape: constant, rate: 100}}]")
    found = sorted(row["event_time"].timestamp() for row in prefix(plan, 300))
    assert found == pytest.approx([first + (n + 1) / 100 for n in range(300)], abs=1e-6)


def test_late_rows_lie_back_by_the_delay_that_the_plan_names():
    plan = parse_plan(PLAN)
    delays = Generator(plan, ORIGIN).delays(np.arange(100_000))
    late = delays[delays > 0]
    assert len(late) / 100_000 == pytest.approx(0.1, abs=0.005)
    assert late.min() >= 5 and late.max() <= 50
    assert late.mean() == pytest.approx(27.5, abs=0.5)


@cases(
    "keys, hottest",
    ("zipf over few keys is exact", "{accounts: 4500, distribution: zipf, exponent: 0.99}", 0.107),
    ("steep zipf", "{accounts: 4500, distribution: zipf, exponent: 1.5}", 0.387),
    ("whale", "{accounts: 4500, distribution: whale, share: 0.8}", 0.8),
    ("uniform", "{customers: 100, accounts: 100}", 0.01),
    ("a whale alone", "{customers: 1, accounts: 1, distribution: whale}", 1.0),
)
def test_the_hottest_account_has_the_share_that_the_plan_asks_for(keys, hottest):
    plan = parse_plan(f"keys: {keys}\nphases: [{{shape: constant, rate: 100}}]")
    counts = rows(plan, 0, 0, 200_000)["account_id"].value_counts()
    assert max(count["counts"].as_py() for count in counts) / 200_000 == pytest.approx(hottest, rel=0.05, abs=0.0015)


def test_an_account_belongs_to_one_customer_and_every_customer_is_used():
    plan = parse_plan(PLAN)
    found = prefix(plan, 60_000)
    owners = {(row["account_id"], row["customer_id"]) for row in found}

    assert len(owners) == len({account for account, _ in owners}) == 50
    assert {account for account, _ in owners} == set(account_ids(plan.keys))
    assert {customer for _, customer in owners} == set(customer_ids(plan.keys))


def test_money_holds_cents_exactly_with_either_sign():
    cents = np.array([0, 1, -1, 99, 123456, -123456, 2**53 + 1, 999_999_999_999_999_999 // 100])
    assert arrow.money(cents).to_pylist() == [Decimal(int(c)).scaleb(-2) for c in cents]
