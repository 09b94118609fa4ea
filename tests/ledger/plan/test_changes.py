"""Plans that change their character for a while: what they may say, and that every record stays a pure function."""

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerops.ledger.plan.changes import Change
from ledgerops.ledger.plan.generate import Generator, account_ids
from ledgerops.ledger.plan.partitioning import Partitions
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.poison import REASONS
from ledgerops.ledger.plan.record_stream import PlanStream, chunks
from ledgerops.ledger.plan.sections import Duplicates, Future, Keys, Late, Poison
from ledgerops.ledger.plan.summary import Summary
from tests.refusals import refusal_of
from tests.tables import cases

ONE = "phases: [{shape: constant, rate: 10}]\n"
TEXT = """
seed: 3
start: 2026-01-01T00:00:00Z
phases: [{shape: constant, rate: 100, duration: 30}, {shape: constant, rate: 0, duration: 10},
         {shape: sine, low: 20, high: 200, period: 13, duration: 40}, {shape: constant, rate: 0}]
keys: {customers: 40, accounts: 50}
partitions: {count: 4, idle: [3]}
disorder: {late: {share: 0.05, low: 5, high: 50}}
duplicates: {share: 0.1, within: 3s}
changes:
  - {from: 10s, to: 50s, keys: {distribution: whale, share: 0.6, rotate: 5s}}
  - from: 15s
    to: 45s
    partitions: {count: 6, pinned: {partition: 2, share: 0.8}}
    duplicates: {share: 0.3, within: 5s, conflicting: 0.25}
    poison: {share: 0.2}
  - {from: 20s, to: 25s, disorder: {future: {count: 3, ahead: 1h}}}
  - {from: 60s, disorder: {future: {share: 0.1, ahead: 1h}}}
"""
PLAN = parse_plan(TEXT)
TOTAL = 3000 + round(110 * 40 - 90 * 13 / (2 * math.pi) * math.sin(2 * math.pi * 40 / 13))
STREAM = PlanStream(PLAN, 0.0)
ROWS = STREAM.rows(0, STREAM.total)
DUE = STREAM.due_time(ROWS.numbers)


def during(begin, end):
    return (begin <= DUE) & (end > DUE)


def rows_of(text, start, end):
    """Rows of ten a second with this said besides."""
    return PlanStream(parse_plan(ONE + text), 0.0).rows(start, end)


def column(name, rows=ROWS):
    return rows.batch.column(name).to_pylist()


def test_a_change_says_what_holds_meanwhile_and_takes_numbers_from_the_plan():
    text = "keys: {customers: 40, accounts: 44}\npartitions: {count: 7}\nchanges:\n  - {from: 45s, to: 1m, "
    text += "keys: {distribution: zipf}, partitions: {idle: [6]}, disorder: {late: {share: 0.1}}}\n"
    text += "  - {from: 90, duplicates: {share: 0.1}, poison: {share: 0.1}}"

    assert parse_plan(ONE + text).changes == (
        Change(45, 60, Keys(40, 44, "zipf"), Partitions(7, (6,)), Late(0.1), Future()),
        Change(90, math.inf, duplicates=Duplicates(0.1), poison=Poison(0.1)),
    )


# what follows the only phase -> what is said of it
@cases(
    "text, message",
    ("no beginning", "changes: [{to: 5, keys: {}}]", "2: changes[0]: the key from is missing"),
    ("no length", "changes:\n  - {from: 9, to: 9s, keys: {}}",
     "3: changes[0].to: expected a time after from (9 s), got 9 s"),
    ("nothing changes", "changes:\n  - {from: 9, to: 10}",
     "3: changes[0]: expected at least one of keys, partitions, disorder, duplicates, poison"),
    ("two at once",
     "changes:\n  - {from: 9, keys: {}}\n  - {from: 1, to: 9, keys: {}}\n  - {from: 8, to: 10, keys: {}}",
     "5: changes[2].keys: changes[0] changes keys in the same seconds"),
    ("a section that cannot change", "changes:\n  - {from: 9, amounts: {}}",
     "3: changes[0].amounts: unknown key; known here: from, to, keys, partitions, disorder, duplicates, poison"),
    ("a partition that the plan lacks",
     "partitions: {count: 3}\nchanges:\n  - {from: 9, partitions: {pinned: {partition: 3, share: 1}}}",
     "4: changes[0].partitions.pinned.partition: expected a whole number from 0 to 2, got 3"),
)  # fmt: skip
def test_a_bad_change_is_refused_in_one_line(text, message):
    assert refusal_of(parse_plan, ONE + text) == f"plan.yaml:{message}"


@cases(
    "with_it, without",
    ("rotate", "keys: {distribution: whale, rotate: 30s}", "keys: {distribution: whale}"),
    ("conflicting", "duplicates: {share: 0.1, conflicting: 0.1}", "duplicates: {share: 0.1}"),
    ("future", "disorder: {future: {count: 1, ahead: 1h}}", ""),
    (
        "a change",
        "changes: [{from: 5, keys: {distribution: whale, rotate: 9s}}]",
        "changes: [{from: 5, keys: {distribution: whale}}]",
    ),
)
def test_the_digest_tells_what_a_plan_says_more(with_it, without):
    assert parse_plan(ONE + with_it).digest != parse_plan(ONE + without).digest


def test_in_a_silent_phase_nothing_is_due_and_the_last_one_ends_the_stream():
    assert (STREAM.due(30), STREAM.due(39.9), STREAM.due(10_000), STREAM.total) == (3000, 3000, TOTAL, TOTAL)
    assert not during(30.001, 40).any()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, TOTAL - 1), st.integers(1, 500))
def test_rows_are_the_same_in_any_range(start, count):
    some, mine = STREAM.rows(start, min(start + count, TOTAL)), slice(start, start + count)
    assert some.batch.equals(ROWS.batch.slice(start, count))
    for name in ("partitions", "first", "delays", "conflicting"):
        assert getattr(some, name).tolist() == getattr(ROWS, name)[mine].tolist()


def test_the_source_hands_out_by_partition_what_the_stream_holds():
    generator = Generator(PLAN, 0.0)
    ids = column("transaction_id")

    for partition, head in enumerate(generator.layout.heads(TOTAL)):
        parts = [*generator.batches(partition, 0, head // 3), *generator.batches(partition, head // 3, head)]
        found = pa.Table.from_batches(parts, ROWS.batch.schema)["transaction_id"].to_pylist()
        assert found == [each for each, p in zip(ids, ROWS.partitions.tolist(), strict=True) if p == partition]


def test_a_pinned_window_begins_with_its_first_record_and_ends_with_its_last():
    pinned = ROWS.partitions == 2

    shares = [np.mean(pinned[during(begin, end)]) for begin, end in ((0, 15), (15, 45), (45, 90))]
    assert shares == pytest.approx([1 / 3, 0.8, 1 / 3], abs=0.002)
    assert set(ROWS.partitions[during(15, 45)].tolist()) == {0, 1, 2, 3, 4, 5}
    assert set(ROWS.partitions[~during(15, 45)].tolist()) == {0, 1, 2}
    assert (pinned[during(14.9, 15)].sum(), pinned[during(15, 15.1)].sum()) == (3, 8)


def test_a_whale_goes_from_customer_to_customer_on_time():
    own = ROWS.first & during(10, 50)
    customers, spells = np.array(column("customer_id")), np.floor((DUE - 10) / 5).astype(int)
    kings = []
    for spell in range(8):
        mine = own & (spells == spell)
        if mine.sum() > 9:
            name, count = Counter(customers[mine].tolist()).most_common(1)[0]
            assert count / mine.sum() == pytest.approx(0.6, abs=0.1)
            kings.append(name)

    assert len(kings) == len(set(kings)) == 6  # two spells are silent
    calm = Counter(customers[ROWS.first & during(0, 10)].tolist())
    assert max(calm.values()) / sum(calm.values()) < 0.08


def test_a_whale_that_does_not_rotate_is_where_a_rotating_one_begins():
    still = rows_of("keys: {customers: 40, distribution: whale, share: 0.6}", 0, 299)
    rotating = rows_of("keys: {customers: 40, distribution: whale, share: 0.6, rotate: 30s}", 0, 299)
    assert still.batch.equals(rotating.batch)


def test_after_the_last_customer_the_first_is_the_whale_again():
    rows = rows_of("keys: {customers: 3, accounts: 30, distribution: whale, share: 1, rotate: 1s}", 0, 89)
    customers = column("customer_id", rows)
    kings = [king for i in range(8) for king in set(customers[9 + 10 * i : 19 + 10 * i])]
    assert len(kings) == 8 and kings[:3] == kings[3:6]
    assert set(kings[:3]) == {"C00000001", "C00000002", "C00000003"}


def test_a_rotation_begins_with_its_change():
    text = "keys: {customers: 40}\nchanges: [{from: 7s, keys: {distribution: whale, share: 0.9, rotate: 5s}}]"
    still, rotating = (rows_of(each, 70, 119) for each in (text.replace(", rotate: 5s", ""), text))
    assert Counter(column("account_id", still)) == Counter(column("account_id", rotating))


def test_the_account_whose_turn_it_is_changes_places_with_the_first():
    rows = rows_of("keys: {customers: 3, accounts: 3, distribution: whale, share: 0.5, rotate: 30s}", 300, 599)
    seen = Counter(column("account_id", rows))
    assert sorted(seen.values()) == pytest.approx([75, 75, 150], abs=25)


def test_counted_records_are_no_copies_and_none_is_copied():
    change = "changes: [{from: 9.95s, disorder: {future: {count: 200, ahead: 1h}}}]"
    rows = rows_of(f"duplicates: {{share: 0.5, within: 30s}}\n{change}", 0, 2000)
    assert np.flatnonzero(rows.delays < 0).tolist() == list(range(99, 299))
    assert rows.first[99:299].all()
    assert np.mean(~rows.first[400:]) == pytest.approx(0.5, abs=0.05)


def test_so_many_records_as_the_plan_counts_are_dated_ahead():
    ahead = np.flatnonzero((ROWS.delays < 0) & (DUE < 60))
    first = int(np.flatnonzero(DUE >= 20)[0])

    assert ahead.tolist() == [first, first + 1, first + 2]
    assert ROWS.delays[ahead].tolist() == [-3600, -3600, -3600]
    instants = ROWS.batch.column("event_time").cast(pa.int64()).to_numpy() / 1e6 - PLAN.start
    assert instants[ROWS.first] == pytest.approx((DUE - ROWS.delays)[ROWS.first], abs=1e-6)


def test_a_window_of_disorder_replaces_the_plans_own():
    assert not (ROWS.delays[ROWS.first & during(20, 25)] > 0).any()
    assert (ROWS.delays[during(60, 90)] < 0).mean() == pytest.approx(0.1, abs=0.02)
    assert (ROWS.delays[ROWS.first & during(0, 20)] > 0).mean() == pytest.approx(0.05, abs=0.02)


def test_a_count_holds_once_for_the_plan_and_not_after_each_change():
    text = "disorder: {future: {count: 2, ahead: 9}}\nchanges: [{from: 5, to: 6, disorder: {late: {share: 1}}}]"
    assert np.flatnonzero(rows_of(text, 0, 300).delays < 0).tolist() == [0, 1]


def test_copies_are_as_many_as_the_window_says_and_a_quarter_of_them_conflicts():
    copies, inside = ~ROWS.first, during(15, 45)
    assert copies[inside].mean() == pytest.approx(0.3, abs=0.03)
    assert copies[~inside].mean() == pytest.approx(0.1, abs=0.02)
    assert not ROWS.conflicting[~inside].any()
    assert ROWS.conflicting[inside].sum() / copies[inside].sum() == pytest.approx(0.25, abs=0.05)


def test_a_conflicting_copy_tells_another_amount_and_nothing_else():
    rows = ROWS.batch.to_pylist()
    original = {row["transaction_id"]: row for row, first in zip(rows, ROWS.first, strict=True) if first}

    for row, conflicting in zip(rows, ROWS.conflicting, strict=True):
        before = original[row["transaction_id"]]
        assert (row == before) is not bool(conflicting)
        assert row | {"amount": None} == before | {"amount": None}


def test_each_copy_may_conflict_by_itself_and_never_tells_the_same():
    rows = rows_of("duplicates: {share: 0.5, within: 30s, conflicting: 0.5}\namounts: {sigma: 0}", 0, 2000)
    ids = np.array(column("transaction_id", rows))
    copies, conflicting = (set(ids[~rows.first & of]) for of in (~rows.conflicting, rows.conflicting))
    assert ([amount != 2100 for amount in column("amount", rows)] == rows.conflicting).all()
    assert copies & conflicting, "no transaction has copies of both kinds"


def test_poison_comes_in_its_window_only():
    kinds = STREAM.poison(ROWS.numbers, REASONS)
    assert (kinds[during(15, 45)] >= 0).mean() == pytest.approx(0.2, abs=0.03)
    assert (kinds[~during(15, 45)] == -1).all()


def test_the_manifests_count_what_is_there():
    summary = Summary.of(rows for _, rows in chunks(STREAM, None))
    late, future = (np.count_nonzero(by(ROWS.delays[ROWS.first], 0)) for by in (np.greater, np.less))

    assert (summary.all.rows, summary.distinct.rows) == (TOTAL, ROWS.first.sum())
    assert (summary.late, summary.future, summary.ahead_seconds) == (late, future, 3600)
    assert summary.conflicting == ROWS.conflicting.sum()
    assert Summary.read(summary.document()) == summary


def test_every_account_that_a_change_names_is_in_the_reference_data():
    plan = parse_plan(ONE + "keys: {customers: 4, accounts: 9}\nchanges: [{from: 5, keys: {customers: 30}}]")
    found = PlanStream(plan, 0.0).rows(0, 2000).batch.column("account_id").to_pylist()
    assert set(found) == set(account_ids(plan.all_keys))
    assert (plan.all_keys.customers, plan.all_keys.accounts) == (30, 33)
