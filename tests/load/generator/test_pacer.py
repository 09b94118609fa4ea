"""The pacer: what is due is handed over when it is due, all of it, however it is shared out and however it stops."""

import time

import pytest

from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import CHUNK_RECORDS, PlanStream
from ledgerops.load.generator.accounting import SentCounts, add_up
from ledgerops.load.generator.pacer import Pacer, produce, settle
from ledgerops.load.generator.target import ALL, Share
from ledgerops.load.generator.validity import judge, judge_so_far
from tests.load.generator.expected import expected_records
from tests.load.generator.targets import Memory

PLAN = """
seed: 5
start: 2026-01-01T00:00:00Z
phases: [{shape: constant, rate: RATE}]
keys: {customers: 40, accounts: 50}
disorder: {late: {share: 0.05}}
duplicates: {share: 0.1, conflicting: 0.2}
poison: {share: 0.02}
"""
COUNT = 3 * CHUNK_RECORDS + 1_000


def plan(rate=20_000):
    return parse_plan(PLAN.replace("RATE", str(rate)), "mine.yaml")


def never(seconds):
    time.sleep(seconds)
    return False


class Clock:
    """Moves only when it is told to."""

    now = 100.0

    def __call__(self):
        return self.now


def begun(rate, target, records=None):
    """A pacer that has begun, and the clock that it goes by."""
    clock = Clock()
    pacer = Pacer(PlanStream(plan(rate), 0.0), target, records=records, clock=clock)
    pacer.prepare()
    pacer.begin()
    return pacer, clock


def closed(sent, target):
    settle(sent, target)
    return sent


def rush(pacer):
    while not pacer.over:
        pacer.step()
    return pacer.sent


def at_once(share=ALL, **options):
    target = Memory(**options)
    sent = rush(Pacer(PlanStream(plan(), 0.0), target, records=COUNT, at_once=True, share=share))
    return target, closed(sent, target)


def on_schedule(rate, target, records):
    return closed(produce(PlanStream(plan(rate), 0.0), target, records=records, at_once=False, wait=never), target)


def expected(count):
    return expected_records(plan(), 0.0, count)


def test_everything_arrives_in_the_order_of_the_partitions():
    target, sent = at_once()
    assert target.by_partition() == expected(COUNT)
    assert (sent.records, sent.summary.all.rows) == (COUNT, COUNT)
    assert sent.planned == sent.produced == sent.acknowledged == COUNT + sum(sent.poison.values())


def test_a_target_that_is_full_gets_the_same_in_more_pieces():
    target, sent = at_once(room=700)
    assert target.by_partition() == expected(COUNT)
    assert sent.backpressured >= 1


@pytest.mark.parametrize("count", [2, 3, 7])
def test_several_senders_send_what_one_does(count):
    parts = [at_once(Share(number, count)) for number in range(count)]
    one, sent = at_once()
    whole_order = one.by_partition()
    whole = add_up([part for _, part in parts])

    assert sorted(repr(pair) for target, _ in parts for pair in target.got) == sorted(map(repr, one.got))
    assert whole.summary == sent.summary
    assert whole.poison == sent.poison
    assert (whole.records, whole.produced, whole.acknowledged) == (COUNT, sent.produced, sent.produced)
    for target, _ in parts:
        for partition, some in target.by_partition().items():
            in_order = iter(whole_order[partition])
            assert all(pair in in_order for pair in some)


def test_counts_travel_as_a_document():
    _, sent = at_once()
    assert type(sent).read(sent.document()).document() == sent.document()


def test_a_record_is_handed_over_when_it_is_due_and_not_before():
    pacer, clock = begun(100, Memory())
    seen = []
    for _ in range(5):
        while not pacer.step():
            pass
        seen.append(pacer.reached)
        clock.now += 0.5

    assert seen == [0, 50, 100, 150, 200]
    assert pacer.sent.late(0.99) == pytest.approx(0.49, abs=0.02)


def test_lateness_is_what_the_clock_says_and_not_more():
    target = Memory()
    pacer, clock = begun(100, target, records=200)
    while not pacer.over:
        clock.now += pacer.step() and 0.01

    assert pacer.sent.latest < 0.012
    assert judge(closed(pacer.sent, target)) is None


@pytest.mark.parametrize("table", ["transactions", "debits", "credits"])
def test_the_planned_rate_is_of_the_records_that_are_sent(table):
    clock = Clock()
    pacer = Pacer(PlanStream(plan(1_000), 0.0, table), Memory(), records=None, share=Share(1, 2), clock=clock)
    pacer.begin()
    while clock.now < 110.0:
        clock.now += pacer.step()
    sent = pacer.sent
    assert sent.rate == pytest.approx(sent.produced / sent.seconds, rel=0.01)


def test_a_load_that_is_stopped_tells_what_it_left_undone():
    target = Memory(room=10)
    pacer, clock = begun(10_000, target)
    clock.now += 1.0
    for _ in range(5):
        pacer.step()
    pacer.stop()
    sent = closed(pacer.sent, target)

    assert (sent.produced, len(target.got)) == (50, 50)
    assert sent.summary.all.rows + sum(sent.poison.values()) == 50
    assert sent.planned == pytest.approx(10_200, abs=250)
    assert judge(sent).startswith(f"only 50 of {sent.planned:,} due records were acknowledged (0.5%, ")
    assert judge(sent).endswith("99% required): the target was full")


def test_a_share_ends_at_the_agreed_record_also_where_its_last_one_is_before():
    """Of a table, a share may have none of the last records that all senders agreed to send."""
    target = Memory()
    pacer = Pacer(PlanStream(plan(), 0.0, "debits"), target, records=None, at_once=True)
    pacer.step()
    rows = PlanStream(plan(), 0.0, "debits").rows(0, CHUNK_RECORDS)
    gap = next(int(a) for a, b in zip(rows.numbers, rows.numbers[1:], strict=False) if b - a > 3)
    pacer.limit(gap + 3)
    assert rush(pacer).records == gap + 3


def test_a_load_may_be_ended_at_a_record_to_come():
    target = Memory()
    pacer = Pacer(PlanStream(plan(), 0.0), target, records=None, at_once=True)
    pacer.step()
    pacer.limit(CHUNK_RECORDS + 500)
    sent = rush(pacer)

    assert sent.records == CHUNK_RECORDS + 500
    assert target.by_partition() == expected(CHUNK_RECORDS + 500)


@pytest.mark.parametrize("table", ["debits", "ad_events"])
def test_other_tables_are_shared_out_too(table):
    def sent(*shares):
        stream = PlanStream(plan(), 0.0, table)
        parts = [rush(Pacer(stream, Memory(), records=COUNT, at_once=True, share=share)) for share in shares]
        return add_up(parts).summary, add_up(parts).records

    assert sent(Share(0, 2), Share(1, 2)) == sent(ALL)


def test_a_slow_target_makes_the_load_invalid():
    sent = on_schedule(1_000, Memory(cost=0.15), 800)
    assert sent.acknowledged == sent.produced == sent.planned
    assert judge(sent).startswith("p99 lateness was ")
    assert judge_so_far(sent) == judge(sent)


class Away(Memory):
    """Takes nothing any more."""

    def send(self, records, start, end):
        return start


def test_a_target_that_is_away_shows_while_it_is_away():
    target = Memory()
    pacer, clock = begun(1_000, target)
    for _ in range(300):
        pacer.step()
        clock.now += 0.01
    assert (pacer.sent.backpressure_seconds, judge_so_far(pacer.sent)) == (0.0, None)

    pacer._target = Away()
    for _ in range(200):
        pacer.step()
        clock.now += 0.01
    assert (pacer.sent.backpressured, pacer.sent.backpressure_seconds) == (1, pytest.approx(2.0, abs=0.02))
    assert judge_so_far(pacer.sent) == (
        "1,957 due records were not sent yet: the target was full for 1.99 s; lower the rate, or give the target more "
        "resources"
    )

    pacer._target = target
    for _ in range(20):
        pacer.step()
        clock.now += 0.01
    assert (pacer.sent.backpressured, pacer.sent.backpressure_seconds) == (1, pytest.approx(2.0, abs=0.02))


@pytest.mark.parametrize("produced", [970, 9_900], ids=["less than a second of the rate", "less than 1 %"])
def test_what_has_just_become_due_is_not_held_back(produced):
    planned = 1_000 if produced < 1_000 else 10_000
    assert judge_so_far(SentCounts(planned=planned, produced=produced, rate=50.0)) is None


def test_a_target_that_keeps_up_is_not_blamed():
    sent = on_schedule(2_000, Memory(), 1_000)
    assert judge(sent, late_budget=30.0) is None  # a machine that runs the whole suite may pause


def test_what_was_never_acknowledged_is_told():
    sent = on_schedule(2_000, Memory(acknowledges=False), 100)
    assert judge(sent, late_budget=1.0) == (
        f"only 0 of {sent.planned} due records were acknowledged (0.0%, 99% required): "
        "the load was stopped while it was behind schedule"
    )


def test_what_has_become_due_since_the_last_look_is_not_missing():
    target = Memory()
    pacer, clock = begun(500, target)
    clock.now += 0.5
    while not pacer.step():
        pass
    clock.now += 0.2  # an interrupt, 100 records later
    pacer.stop()
    sent = closed(pacer.sent, target)

    assert sent.records == 250
    assert sent.planned == sent.acknowledged == 256  # poison among them
    assert judge(sent, late_budget=1.0) is None
