"""Samples: four times of some records, and the latency of each leg."""

from pathlib import Path

import pytest

from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream
from ledgerops.load.generator.latency_samples import LatencySample, Sampler, every, histogram, percentile
from ledgerops.load.generator.pacer import Pacer
from tests.load.generator.targets import Memory, read_samples
from tests.refusals import refusal_of

PLAN = """
seed: 5
start: 2026-01-01T00:00:00Z
phases: [{shape: constant, rate: 1000}]
duplicates: {share: 0.5}
poison: {share: 0.1}
"""


def stream(table="transactions"):
    return PlanStream(parse_plan(PLAN, "mine.yaml"), 0.0, table)


def sampled(file, table="transactions", at_once=False, every=100, records=2_000):
    clock = [0.0]
    sampler = Sampler(every, file, at_once)
    pacer = Pacer(stream(table), Memory(), records=records, at_once=at_once, sampler=sampler, clock=lambda: clock[0])
    pacer.prepare()
    pacer.begin()
    while not pacer.over:
        clock[0] += pacer.step()
    sampler.close()
    return sampler, read_samples(file)


def test_first_records_are_sampled_with_their_times(tmp_path):
    _, found = sampled(tmp_path / "samples.jsonl")
    rows = stream().rows(0, 2_000)

    chosen = [each["number"] for each in found]
    assert 5 < len(chosen) < 20
    assert all(rows.first[n] for n in chosen)
    for each in found:
        assert each["transaction_id"] == f"T{each['number']:010}"
        assert each["acknowledged"] - each["created"] == pytest.approx(0.5, abs=1e-5)
    began = found[0]["scheduled"] - (found[0]["number"] + 1) / 1000
    assert [each["scheduled"] for each in found] == pytest.approx([began + (n + 1) / 1000 for n in chosen], abs=1e-4)


def test_samples_are_of_all_partitions_and_of_what_each_worker_sends(tmp_path):
    """Record n goes to partition n % 5, and of two workers to n % 2."""
    _, found = sampled(tmp_path / "samples.jsonl", every=10)
    numbers = [each["number"] for each in found]
    assert {n % 10 for n in numbers} == set(range(10))


def test_the_same_records_are_sampled_however_they_are_shared_out(tmp_path):
    first, again = (sampled(tmp_path / name)[1] for name in "ab")
    assert [each["number"] for each in first] == [each["number"] for each in again]


def test_a_load_at_once_has_no_schedule_and_ad_events_no_transaction(tmp_path):
    _, found = sampled(tmp_path / "a", table="ad_events", at_once=True)
    assert {(each["scheduled"], each["transaction_id"]) for each in found} == {(None, None)}


def test_samples_of_debits_are_debits(tmp_path):
    _, found = sampled(tmp_path / "a", table="debits", every=1, records=500)
    rows = stream("debits").rows(0, 500)

    ids = rows.batch.column("transaction_id").to_pylist()
    assert [each["transaction_id"] for each in found] == [
        id for id, first in zip(ids, rows.first, strict=True) if first
    ]


def test_each_leg_is_from_one_time_to_another(tmp_path):
    sampler = Sampler(1, tmp_path / "a")
    sampler.begin(10.0)
    for appended in (10.06, 10.03, None):  # of a broker whose clock is behind, and of one that does not tell
        sample = LatencySample(0, 0, "T1", 0.0, sampler, created=10.04)
        sampler.keep(sample, 10.1, appended)
    sampler.close()

    assert {name: (each.get_total_count(), percentile(each, 1.0)) for name, each in sampler.legs.items()} == {
        "append": (2, pytest.approx(0.02, rel=1e-3)),
        "acknowledge": (3, pytest.approx(0.06, rel=1e-3)),
        "acknowledge_corrected": (3, pytest.approx(0.1, rel=1e-3)),
    }
    assert percentile(sampler.legs["append"], 0.5) == 1e-6
    assert percentile(histogram(), 0.99) is None


def test_histograms_of_several_senders_add_up():
    some, others = histogram(), histogram()
    some.record_value(1_000)
    others.record_value(9_000)
    whole = histogram([some.encode().decode(), others.encode().decode()])

    assert (whole.get_total_count(), whole.get_max_value() // 100) == (2, 90)


@pytest.mark.parametrize(
    ("records", "expected"), [pytest.param(None, 10, id="endless"), pytest.param(50, 1, id="few"), (100_000, 10)]
)
def test_about_a_hundred_samples_a_second(records, expected):
    assert every(stream(), records) == expected


def test_a_place_that_cannot_be_written_is_told():
    assert refusal_of(Sampler, 1, Path("/dev/null/s.jsonl")).startswith("cannot write /dev/null/s.jsonl: ")
