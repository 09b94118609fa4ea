"""First and next offsets of partitions, read from the broker that librdkafka brings for tests."""

import pytest
from confluent_kafka import KafkaError, Producer

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.common.kafka_offsets import Offsets, ask_offsets, read_heads
from tests.refusals import refusal_of

PARTITIONS = 4  # of each topic of the mock broker
ANSWER = 60  # seconds


@pytest.fixture(scope="module")
def client():
    """Of a broker whose topic `t` holds two records in partition 0 and one in partition 1."""
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    for partition in (0, 0, 1):
        producer.produce("t", b"x", partition=partition)
    assert producer.flush(ANSWER) == 0
    [broker] = producer.list_topics(timeout=ANSWER).brokers.values()
    yield KafkaClient(f"{broker.host}:{broker.port}")
    del producer  # the broker lives in it


def test_heads_count_the_records_of_each_partition_and_beginnings_are_zero_while_nothing_was_deleted(client):
    assert read_heads(client, {"t": PARTITIONS}) == {("t", "0"): 2, ("t", "1"): 1, ("t", "2"): 0, ("t", "3"): 0}
    assert read_heads(client, {"t": 2}, "earliest") == {("t", "0"): 0, ("t", "1"): 0}
    assert read_heads(client, {}) == {}


def test_a_partition_that_does_not_exist_is_an_error_beside_the_answers_for_others(client):
    newest, oldest = ask_offsets(reach(client), [("t", 0), ("t", 99)], ("latest", "earliest"), ANSWER)
    assert (newest.known, oldest.known) == ({("t", 0): 2}, {("t", 0): 0})
    assert [error.code() for error in newest.errors.values()] == [KafkaError._UNKNOWN_PARTITION]
    assert list(newest.errors) == [("t", 99)]


def test_nothing_is_asked_about_no_partition(client):
    assert ask_offsets(reach(client), [], ("latest",), ANSWER) == [Offsets()]


def test_an_offset_that_cannot_be_read_is_one_line_that_names_the_broker(client):
    line = refusal_of(read_heads, client, {"t": 99})
    assert line.startswith(f"cannot read the latest offsets of the topics of {client.servers}: ")
