"""The Kafka target on librdkafka's own broker: real queues, requests and acknowledgements, without a server."""

import itertools
import threading
import time

import pytest

from ledgerops.common.kafka import KafkaClient
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream
from ledgerops.load.generator.calibration import MOCK_PARTITIONS
from ledgerops.load.generator.kafka import SETTINGS, KafkaTarget
from ledgerops.load.generator.latency_samples import Sampler
from ledgerops.load.generator.pacer import produce, settle
from tests.load.generator.targets import read_samples

PLAN = """
seed: 5
start: 2026-01-01T00:00:00Z
phases: [{shape: constant, rate: 2000}]
partitions: {count: PARTITIONS}
"""


NEVER = threading.Event().wait


def send(records, sampler=None, at_once=False, wait=NEVER, partitions=MOCK_PARTITIONS, **options):
    client = KafkaClient("mock:9092", {"test.mock.num.brokers": "1", **options})
    target = KafkaTarget(client, "transactions", partitions, wait, checked=False)
    stream = PlanStream(parse_plan(PLAN.replace("PARTITIONS", str(partitions)), "mine.yaml"), 0.0)
    sent = produce(stream, target, records=records, at_once=at_once, wait=wait, sampler=sampler)
    settle(sent, target)
    return sent, target


def test_every_record_is_acknowledged_and_counted():
    sent, target = send(30_000, at_once=True)
    assert (sent.produced, sent.acknowledged, sent.refused, sent.problem) == (30_000, 30_000, 0, None)
    assert (target.waiting, sent.backpressured) == (0, 0)


def test_a_sample_has_the_times_of_sender_and_broker(tmp_path):
    sampler = Sampler(100, tmp_path / "samples.jsonl")
    send(1_000, sampler)
    sampler.close()
    found = read_samples(tmp_path / "samples.jsonl")

    numbers = [each["number"] for each in found]
    assert 2 < len(numbers) == len(set(numbers)) < 30 and max(numbers) < 1_000
    for each in found:
        assert each["scheduled"] <= each["created"] <= each["acknowledged"]
        assert each["appended"] == 1.234  # this broker's clock stands still


def test_a_broker_that_is_slow_fills_the_queue_which_is_told_and_loses_nothing(monkeypatch):
    # so few that they are handed over before the broker's first answer, on whatever machine
    monkeypatch.setitem(SETTINGS, "queue.buffering.max.messages", 10_000)
    count = 15_000
    sent, _ = send(count, at_once=True, **{"test.mock.broker.rtt": "400"})

    assert (sent.produced, sent.acknowledged) == (count, count)
    assert sent.backpressured >= 1
    assert sent.backpressure_seconds > 0.1


def test_what_the_client_refuses_ends_the_load():
    sent, _ = send(2_000, at_once=True, partitions=MOCK_PARTITIONS + 1)  # one more than the topic has

    assert sent.refused >= 1
    # the client refuses at once when it knows the topic already, and otherwise once it does
    assert sent.acknowledged < 2_000
    assert "partition" in sent.problem


@pytest.mark.parametrize("at_once", [True, False])
def test_a_stop_leaves_only_what_was_handed_over(at_once):
    looks = itertools.count()

    def wait(seconds):
        time.sleep(seconds)
        return next(looks) >= 20

    sent, _ = send(10**9, at_once=at_once, wait=wait)

    assert sent.records == sent.produced == sent.acknowledged == sent.summary.all.rows
