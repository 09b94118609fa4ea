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


def test_a_change_says_what_holds_meanwhile_and_takes_numbers_from_the_plan():
    text = "keys: {customers: 40, accounts: 44}\npartitions: {count: 7}\nchanges:\n  - {from: 45s, to: 1m, "
    plan = parse_plan(
        ONE + text + "keys: {distribution: zipf}, partitions: {idle: [6]}, disorder: {late: {share: 0.1}}}\n"
        "  - {from: 90, duplicates: {share: 0.1}, poison: {share: 0.1}}"
    )

    assert plan.changes == (
        Change(45, 60, Keys(40, 44, "zipf"), Partitions(7, (6,)), Late(0.1), Future()),
        Change(90, math.inf, duplicates=Duplicates(0.1), poison=Poison(0.1)),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "changes: [{to: 5, keys: {}}]", "plan.yaml:2: changes[0]: the key from is missing", id="no beginning"
        ),
        pytest.param(
            "changes:\n  - {from: 9, to: 9s, keys: {}}",
            "plan.yaml:3: changes[0].to: expected a time after from (9 s), got 9 s",
            id="no length",
        ),
        pytest.param(
            "changes:\n  - {from: 9, to: 10}",
            "plan.yaml:3: changes[0]: expected at least one of keys, partitions, disorder, duplicates, poison",
            id="nothing changes",
        ),
        pytest.param(
            "changes:\n  - {from: 9, keys: {}}\n  - {from: 1, to: 9, keys: {}}\n  - {from: 8, to: 10, keys: {}}",
            "plan.yaml:5: changes[2].keys: changes[0] changes keys in the same seconds",
            id="two at once",
        ),
        pytest.param(
            "changes:\n  - {from: 9, amounts: {}}",
            "plan.yaml:3: changes[0].amounts: unknown key; known here: from, to, keys, partitions, disorder, "
            "duplicates, poison",
            id="a section that cannot change",
        ),
        pytest.param(
            "partitions: {count: 3}\nchanges:\n  - {from: 9, partitions: {pinned: {partition: 3, share: 1}}}",
            "plan.yaml:4: changes[0].partitions.pinned.partition: expected a whole number from 0 to 2, got 3",
            id="a partition that the plan lacks",
        ),
        pytest.param("disorder: {}", "plan.yaml:2: disorder: expected late or future, or both", id="order"),
        pytest.param(
            "disorder: {future: {share: 0.1, count: 1, ahead: 1h}}",
            "plan.yaml:2: disorder.future: expected either share or count",
            id="share and count",
        ),
        pytest.param(
            "disorder: {future: {count: 1}}",
            "plan.yaml:2: disorder.future: the key ahead is missing",
            id="no distance",
        ),
        pytest.param(
            "duplicates: {share: 0.1, conflicting: 25}",
            "plan.yaml:2: duplicates.conflicting: expected a number from 0 to 1, got 25",
            id="a share in percent",
        ),
        pytest.param(
            "keys: {distribution: zipf, rotate: 30s}",
            "plan.yaml:2: keys.rotate: belongs to the distribution whale, and this one is zipf",
            id="zipf rotates",
        ),
    ],
)
def test_a_bad_change_is_refused_in_one_line(text, message):
    assert refusal_of(parse_plan, ONE + text) == message


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("keys: {distribution: whale, rotate: 30s}", id="rotate"),
        pytest.param("duplicates: {share: 0.1, conflicting: 0.1}", id="conflicting"),
        pytest.param("disorder: {future: {count: 1, ahead: 1h}}", id="future"),
        pytest.param("changes: [{from: 5, keys: {distribution: whale, rotate: 9s}}]", id="a change"),
    ],
)
def test_the_digest_tells_what_a_plan_says_more(more):
    without = more.replace(", rotate: 30s", "").replace(", conflicting: 0.1", "").replace(", rotate: 9s", "")
    without = "" if without == more else without
    assert parse_plan(ONE + more).digest != parse_plan(ONE + without).digest


def test_the_stream_ends_where_its_last_phase_is_silent():
    assert STREAM.total == TOTAL
    assert np.isfinite(DUE).all()
    assert np.isinf(STREAM.due_time(np.array([TOTAL])))[0]
    assert STREAM.due(10_000) == TOTAL
    assert sum(len(rows.numbers) for _, rows in chunks(STREAM, None)) == TOTAL


def test_in_a_silent_phase_nothing_is_due():
    assert STREAM.due(30) == STREAM.due(39.9) == 3000
    assert not during(30.001, 40).any()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, TOTAL - 1), st.integers(1, 500))
def test_rows_are_the_same_in_any_range(start, count):
    some = STREAM.rows(start, min(start + count, TOTAL))
    mine = slice(start, start + count)

    assert some.batch.equals(ROWS.batch.slice(start, count))
    for name in ("partitions", "first", "delays", "conflicting"):
        assert getattr(some, name).tolist() == getattr(ROWS, name)[mine].tolist()


def test_the_source_hands_out_by_partition_what_the_stream_holds():
    generator = Generator(PLAN, 0.0)
    heads = generator.layout.heads(TOTAL)
    ids = ROWS.batch.column("transaction_id").to_pylist()

    for partition, head in enumerate(heads):
        parts = [*generator.batches(partition, 0, head // 3), *generator.batches(partition, head // 3, head)]
        found = pa.Table.from_batches(parts, ROWS.batch.schema)["transaction_id"].to_pylist()
        assert found == [each for each, p in zip(ids, ROWS.partitions.tolist(), strict=True) if p == partition]


def test_a_pinned_window_begins_with_its_first_record_and_ends_with_its_last():
    share = {
        (begin, end): np.mean(ROWS.partitions[during(begin, end)] == 2) for begin, end in ((0, 15), (15, 45), (45, 90))
    }
    before, inside = ROWS.partitions[during(14.9, 15)], ROWS.partitions[during(15, 15.1)]

    assert share == pytest.approx({(0, 15): 1 / 3, (15, 45): 0.8, (45, 90): 1 / 3}, abs=0.002)
    assert set(ROWS.partitions[during(15, 45)].tolist()) == {0, 1, 2, 3, 4, 5}
    assert set(ROWS.partitions[~during(15, 45)].tolist()) == {0, 1, 2}
    assert (Counter(before.tolist())[2], Counter(inside.tolist())[2]) == (3, 8)


def test_a_whale_goes_from_customer_to_customer_on_time():
    own = ROWS.first & during(10, 50)
    customers = np.array(ROWS.batch.column("customer_id").to_pylist())
    spells = np.floor((DUE - 10) / 5).astype(int)
    kings = []
    for spell in range(8):
        mine = own & (spells == spell)
        if mine.sum() > 9:
            name, count = Counter(customers[mine].tolist()).most_common(1)[0]
            assert count / mine.sum() == pytest.approx(0.6, abs=0.1)
            kings.append(name)

    assert len(kings) == 6  # two spells are silent
    assert len(set(kings)) == 6
    calm = Counter(customers[ROWS.first & during(0, 10)].tolist())
    assert max(calm.values()) / sum(calm.values()) < 0.08


def test_a_whale_that_does_not_rotate_is_where_a_rotating_one_begins():
    still = "keys: {customers: 40, distribution: whale, share: 0.6}\n"
    rotating = still.replace("0.6", "0.6, rotate: 30s")
    first, other = (PlanStream(parse_plan(ONE + keys), 0.0).rows(0, 299).batch for keys in (still, rotating))
    assert first.equals(other)


def test_after_the_last_customer_the_first_is_the_whale_again():
    plan = parse_plan(ONE + "keys: {customers: 3, accounts: 30, distribution: whale, share: 1, rotate: 1s}")
    customers = PlanStream(plan, 0.0).rows(0, 89).batch.column("customer_id").to_pylist()
    spells = [set(customers[9 + 10 * i : 19 + 10 * i]) for i in range(8)]

    assert all(len(each) == 1 for each in spells)
    assert spells[:3] == spells[3:6]
    assert set().union(*spells[:3]) == {"C00000001", "C00000002", "C00000003"}


def test_a_rotation_begins_with_its_change():
    text = ONE + "keys: {customers: 40}\nchanges: [{from: 7s, keys: {distribution: whale, share: 0.9, rotate: 5s}}]"
    first, other = (
        Counter(PlanStream(parse_plan(text.replace(", rotate: 5s", still)), 0.0).rows(70, 119).batch["account_id"])
        for still in ("", ", rotate: 5s")
    )

    assert first == other


def test_the_account_whose_turn_it_is_changes_places_with_the_first():
    plan = parse_plan(ONE + "keys: {customers: 3, accounts: 3, distribution: whale, share: 0.5, rotate: 30s}")
    seen = Counter(PlanStream(plan, 0.0).rows(300, 599).batch.column("account_id").to_pylist())
    assert sorted(seen.values()) == pytest.approx([75, 75, 150], abs=25)


def test_counted_records_are_no_copies_and_none_is_copied():
    change = "changes: [{from: 9.95s, disorder: {future: {count: 200, ahead: 1h}}}]"
    rows = PlanStream(parse_plan(ONE + f"duplicates: {{share: 0.5, within: 30s}}\n{change}"), 0.0).rows(0, 2000)

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
    text = ONE + "disorder: {future: {count: 2, ahead: 9}}\nchanges: [{from: 5, to: 6, disorder: {late: {share: 1}}}]"
    assert (np.flatnonzero(PlanStream(parse_plan(text), 0.0).rows(0, 300).delays < 0)).tolist() == [0, 1]


def test_copies_are_as_many_as_the_window_says_and_a_quarter_of_them_conflicts():
    copies, inside = ~ROWS.first, during(15, 45)
    ids, amounts = ROWS.batch.column("transaction_id").to_pylist(), ROWS.batch.column("amount").to_pylist()
    original = {each: amount for each, amount, first in zip(ids, amounts, ROWS.first, strict=True) if first}
    other = np.array([original[each] != amount for each, amount in zip(ids, amounts, strict=True)])

    assert copies[inside].mean() == pytest.approx(0.3, abs=0.03)
    assert copies[~inside].mean() == pytest.approx(0.1, abs=0.02)
    assert other.tolist() == ROWS.conflicting.tolist()
    assert not other[~inside].any()
    assert other[inside].sum() / copies[inside].sum() == pytest.approx(0.25, abs=0.05)


def test_a_conflicting_copy_tells_another_amount_and_nothing_else():
    rows = ROWS.batch.to_pylist()
    original = {row["transaction_id"]: row for row, first in zip(rows, ROWS.first, strict=True) if first}

    for row, conflicting in zip(rows, ROWS.conflicting, strict=True):
        before = original[row["transaction_id"]]
        assert row == (before | {"amount": row["amount"]} if conflicting else before)


def test_each_copy_may_conflict_by_itself_and_never_tells_the_same():
    plan = parse_plan(ONE + "duplicates: {share: 0.5, within: 30s, conflicting: 0.5}\namounts: {sigma: 0}")
    rows = PlanStream(plan, 0.0).rows(0, 2000)
    by_id = {}
    for each, first, other in zip(
        rows.batch.column("transaction_id").to_pylist(), rows.first, rows.conflicting, strict=True
    ):
        if not first:
            by_id.setdefault(each, set()).add(bool(other))

    amounts = np.array([float(each) for each in rows.batch.column("amount").to_pylist()])
    assert ((amounts != 2100) == rows.conflicting).all()
    assert any(len(each) == 2 for each in by_id.values())


def test_poison_comes_in_its_window_only():
    kinds = STREAM.poison(ROWS.numbers, REASONS)
    assert (kinds[during(15, 45)] >= 0).mean() == pytest.approx(0.2, abs=0.03)
    assert (kinds[~during(15, 45)] == -1).all()


def test_the_manifests_count_what_is_there():
    summary = Summary()
    for _, rows in chunks(STREAM, None):
        summary.add(rows.batch, rows.first, rows.delays, rows.conflicting)
    late, future = np.count_nonzero(ROWS.delays > 0), np.count_nonzero(ROWS.delays < 0)

    assert (summary.all.rows, summary.distinct.rows) == (TOTAL, np.count_nonzero(ROWS.first))
    assert (summary.late, summary.future, summary.ahead_seconds) == (late, future, 3600)
    assert summary.conflicting == np.count_nonzero(ROWS.conflicting)
    assert Summary.read(summary.document()) == summary


def test_the_scheduled_time_of_any_place_is_known():
    layout = Generator(PLAN, 0.0).layout
    partitions, offsets = layout.places(ROWS.numbers)

    for partition in np.unique(partitions).tolist():
        mine = np.random.default_rng(1).permutation(np.flatnonzero(partitions == partition))
        found = PLAN.schedule.due_time(layout.records(partition, offsets[mine]))
        assert found.tolist() == DUE[mine].tolist()


def test_every_account_that_a_change_names_is_in_the_reference_data():
    plan = parse_plan(ONE + "keys: {customers: 4, accounts: 9}\nchanges: [{from: 5, keys: {customers: 30}}]")
    found = PlanStream(plan, 0.0).rows(0, 2000).batch.column("account_id").to_pylist()
    assert set(found) == set(account_ids(plan.all_keys))
    assert (plan.all_keys.customers, plan.all_keys.accounts) == (30, 33)
