"""Summaries and manifests: exact over any batches, and different for any row that is lost, repeated or changed."""

import json
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerops.ledger.plan.digest import hash_values, row_hashes
from ledgerops.ledger.plan.manifest import Manifest, read_manifest, replay_manifest
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream, ReplayStream, chunks
from ledgerops.ledger.plan.summary import BUCKET_SECONDS, Summary, Tally, cents, money
from ledgerops.ledger.sources.replay import COLUMNS
from tests.refusals import refusal_of
from tests.tables import cases

PLAN = parse_plan(
    """
seed: 3
start: 2026-01-01T00:00:00Z
phases: [{shape: ramp, from: 1, to: 2, duration: 60}]
keys: {customers: 40, accounts: 50}
disorder: {late: {share: 0.1, low: 5, high: 50}}
duplicates: {share: 0.2, within: 30s}
"""
)
STREAM = PlanStream(PLAN, 0.0)
COUNT = 20_000


def summed(stream=STREAM, count=COUNT):
    return Summary.of(rows for _, rows in chunks(stream, count))


def written(tmp_path, **changes):
    facts = {"source": "plan", "plan": "mine", "digest": PLAN.digest, "table": "transactions", "topic": None}
    made = {"records": COUNT, "summary": summed(), "seed": 3, "origin": 0.0, "text": PLAN.text}
    manifest = Manifest(**{**facts, **made, **changes})
    manifest.write(tmp_path / "deep" / "manifest.json")
    return manifest, tmp_path / "deep" / "manifest.json"


@pytest.fixture
def refused(tmp_path):
    """What is said of a manifest's text, after the name of its file."""
    file = tmp_path / "manifest.json"

    def read(text):
        file.write_text(text)
        return refusal_of(read_manifest, file).removeprefix(f"cannot read {file}: ")

    return read


def test_the_summary_counts_what_the_generator_counts():
    found = summed()
    rows = [row for _, each in chunks(STREAM, COUNT) for row in each.batch.to_pylist()]
    once = {row["transaction_id"]: row for row in rows}
    late = sum(int(np.count_nonzero(each.delays[each.first] > 0)) for _, each in chunks(STREAM, COUNT))

    assert (found.all.rows, found.distinct.rows, found.late) == (COUNT, len(once), late)
    for counted, told in ((rows, found.all.amounts), (once.values(), found.distinct.amounts)):
        for kind, sum_ in told.items():
            assert Decimal(money(sum_)) == sum(row["amount"] for row in counted if row["type"] == kind)
    assert 45 < max(each.delays[each.first].max() for _, each in chunks(STREAM, COUNT)) < 50
    assert found.latest_seconds > 50, "a copy comes later than its original"


@given(st.lists(st.integers(0, 3_000), max_size=4), st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_a_summary_does_not_depend_on_batches_or_order(cuts, seed):
    rows = STREAM.rows(0, 3_000)
    order = np.random.default_rng(seed).permutation(3_000)
    mixed = {name: array[order] for name, array in vars(rows).items() if name != "batch"}
    mixed = replace(rows, batch=rows.batch.take(pa.array(order)), **mixed)
    place = np.arange(3_000)
    parts = [mixed.where((low <= place) & (place < high)) for low, high in pairwise([0, *sorted(cuts), 3_000])]

    assert Summary.of(parts) == Summary.of([rows])


def test_buckets_hold_all_rows_by_the_two_hours_in_which_they_happened():
    found = summed()
    rows = [row for _, each in chunks(STREAM, COUNT) for row in each.batch.to_pylist()]
    begin = min(found.buckets) + BUCKET_SECONDS
    mine = [row for row in rows if begin <= row["event_time"].timestamp() < begin + BUCKET_SECONDS]

    bucket = found.buckets[begin]
    assert sum(each.rows for each in found.buckets.values()) == COUNT
    assert (bucket.rows, Decimal(money(bucket.cents))) == (len(mine), sum(row["amount"] for row in mine))


def digests(ids=("T1", "T2"), customers=("C1", None), amounts=("5.00", "7.00"), balances=("7", "5")):
    exact = [[None if each is None else Decimal(each) for each in column] for column in (amounts, balances)]
    arrays = [pa.array(ids), pa.array(customers), *(pa.array(column, pa.decimal128(18, 2)) for column in exact)]
    rows, tally = pa.record_batch(arrays, ["transaction_id", "customer_id", "amount", "balance"]), Tally()
    tally.add(rows, row_hashes(rows), None)
    return tally.digests


@cases(
    "changes, columns",
    ("an id", {"ids": ["T1", "T3"]}, {"transaction_id", "customer_id", "amount", "balance"}),
    ("an empty text for null", {"customers": ["C1", ""]}, {"customer_id"}),
    ("two rows change places", {"customers": [None, "C1"]}, {"customer_id"}),
    ("a cent goes over", {"amounts": ["5.01", "6.99"]}, {"amount"}),
    ("null for an amount", {"amounts": [None, "7.00"]}, {"amount"}),
    ("columns change", {"amounts": ["7", "5"], "balances": ["5", "7"]}, {"amount", "balance"}),
)
def test_a_digest_sees_what_the_sums_do_not(changes, columns):
    one, other = digests(), digests(**changes)
    assert {name for name in one if one[name] != other[name]} == columns


def test_values_hash_by_what_they_mean():
    exact = pa.array([Decimal("12.30"), Decimal("-0.05")], pa.decimal128(18, 2))
    instants = pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC"))
    assert (hash_values(exact) == hash_values(exact.cast(pa.decimal128(28, 4)))).all()
    assert (hash_values(exact) == hash_values(pa.array([12.3, -0.05]))).all()
    assert hash_values(instants)[0] == hash_values(instants.cast(pa.timestamp("ns", "UTC")))[0]


def test_texts_hash_alike_whatever_stands_beside_them():
    texts = ["T0000000001", "", "T1", "T1\0", "T0000000002", "Dvořák", "x" * 100]
    together = hash_values(pa.array([*texts, None]))
    assert [int(hash_values(pa.array([text]))[0]) for text in texts] == together[:-1].tolist()
    assert (hash_values(pa.array(["no", *texts]).slice(1)) == together[:-1]).all()
    assert len(set(together.tolist())) == len(texts) + 1


def test_money_is_text_both_ways():
    texts = ["0.00", "12.30", "-0.05", "-1234567.89"]
    assert [money(cents(text)) for text in texts] == texts


def test_a_manifest_is_read_as_it_was_written_and_gives_its_records_again(tmp_path):
    manifest, file = written(tmp_path, poison={"tombstone": 3}, sent={"planned": COUNT + 3})
    assert read_manifest(file) == manifest
    assert json.loads(file.read_text())["version"] == 1
    assert summed(read_manifest(file).stream(None)) == summed()


def test_a_manifest_whose_buckets_have_figures_without_copies_too_is_read(tmp_path):
    manifest, file = written(tmp_path)
    document = json.loads(file.read_text())
    for bucket in document["summary"]["buckets"]["values"]:
        bucket += [1, "1.00"]
    file.write_text(json.dumps(document))
    assert read_manifest(file) == manifest


@pytest.fixture(scope="module")
def replayed(data_dir):
    """The manifest of a replay of the bank's transactions."""
    return replay_manifest(ReplayStream(data_dir / "transactions.csv", 500.0))


def test_a_replay_counts_the_file(replayed, data_dir):
    assert (replayed.records, replayed.summary.distinct.rows, replayed.summary.late) == (49_102, 49_102, 0)
    amounts = replayed.summary.document()["all_rows"]["amounts"]
    assert amounts == {"Credit": "177366296.30", "Debit": "138120153.50"}
    assert summed(replayed.stream(data_dir), None) == replayed.summary


def test_a_replay_of_a_file_that_has_changed_cannot_be_had_again(replayed, tmp_path, data_dir):
    text = (data_dir / "transactions.csv").read_text()
    (tmp_path / "transactions.csv").write_text(text[: text.index("\n", 500) + 1])
    assert replayed.stream(tmp_path) is replayed.stream(None) is None


def test_a_manifest_remembers_where_the_replayed_file_was(replayed, tmp_path, data_dir):
    replace(replayed, data=str(data_dir)).write(tmp_path / "manifest.json")
    found = read_manifest(tmp_path / "manifest.json")
    assert summed(found.stream(None), None) == found.summary
    assert found.stream(tmp_path) is None  # a folder that is given counts, though it lacks the file
    assert replace(found, data=str(tmp_path / "gone")).stream(None) is None


def test_an_id_that_a_file_has_twice_counts_once(tmp_path):
    row = "T1,A1,Credit,,5.00,5.00,,2013-01-01T09:00:00,C1"
    (tmp_path / "transactions.csv").write_text("\n".join([",".join(COLUMNS), row, "bad", row]))
    stream = ReplayStream(tmp_path / "transactions.csv", 1.0)
    assert (stream.total, stream.rejected, replay_manifest(stream).summary.distinct.rows) == (2, 1, 1)


@cases(
    "text, message",
    ("not JSON", "{", "not a manifest; ledgerops load writes them"),
    ("another document", "[]", "not a manifest; ledgerops load writes them"),
    ("nested too deeply", "[" * 100_000, "not a manifest; ledgerops load writes them"),
    ("another version", '{"version": 9}', "a manifest of version 9; this ledgerops reads version 1"),
    ("half of one", '{"version": 1}', "a damaged manifest ('summary')"),
)
def test_what_is_no_manifest_is_refused(refused, text, message):
    assert refused(text) == message


def test_a_missing_manifest_is_refused(tmp_path):
    assert "no such file or directory; give --manifest" in refusal_of(read_manifest, tmp_path / "manifest.json")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"source": ["plan"]}, "source: expected plan or replay, got ['plan']"),
        ({"plan": None}, "plan: expected text, got None"),
        ({"digest": 7}, "digest: expected text, got 7"),
        ({"topic": 7}, "topic: expected text or null, got 7"),
        ({"records": "x"}, "records: expected a count of records, got 'x'"),
        ({"records": 1e300}, "records: expected a count of records, got 1e+300"),
        ({"records": -1}, "records: expected a count of records, got -1"),
        ({"seed": 1.5}, "seed: expected a whole number or null, got 1.5"),
        ({"origin": float("nan")}, "origin: expected seconds since the epoch or null, got nan"),
        ({"origin": 1e300}, "origin: expected seconds since the epoch or null, got 1e+300"),
        ({"text": ["x" * 100]}, "text: expected text or null, got ['" + "x" * 38),
        ({"poison": [3]}, "poison: expected counts by reason, got [3]"),
        ({"poison": {"tombstone": None}}, "poison: expected counts by reason, got {'tombstone': None}"),
        ({"sent": None}, "sent: expected an object, got None"),
        ({"exact": "no"}, "exact: expected true or false, got 'no'"),
        ({"valid": True}, "no field 'valid' is known"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_field_that_is_something_else_is_told_in_a_line(refused, tmp_path, changes, told):
    _, file = written(tmp_path)
    assert refused(json.dumps({**json.loads(file.read_text()), **changes})) == f"a damaged manifest ({told})"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("all_rows", "rows"), "x"),
        (("distinct_rows", "rows"), None),
        (("late", "rows"), 0.5),
        (("future", "rows"), [1]),
        (("conflicting",), -1),
        (("buckets", "values", 0, 0), "x"),
        (("buckets", "values", 0, 1), {}),
    ],
)
def test_a_count_of_the_summary_that_is_none_is_told_in_a_line(refused, tmp_path, path, value):
    document = json.loads(written(tmp_path)[1].read_text())
    place = document["summary"]
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value

    assert refused(json.dumps(document)) == "a damaged manifest (summary: its counts are not whole numbers)"


@pytest.mark.parametrize(
    "changes",
    [{"origin": 0}, {"records": 0}, {"origin": None, "text": None, "seed": None}, {"poison": {"tombstone": 3}}],
)
def test_a_field_at_the_edge_of_what_it_may_be_is_read(tmp_path, changes):
    manifest, file = written(tmp_path, **changes)
    assert read_manifest(file) == manifest
