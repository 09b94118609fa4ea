"""Topics as outputs, on librdkafka's own broker: what is there is read, and what is no row of a job is told."""

import json
import logging

import pytest
from confluent_kafka import Producer

from ledgerops.common.kafka import KafkaClient
from ledgerops.ledger.verify.check import VerifyInput, check
from ledgerops.ledger.verify.outputs import KafkaOutput
from tests.ledger.verify.made import manifest_of
from tests.refusals import refusal_of


@pytest.fixture(scope="module")
def broker():
    settings = {"bootstrap.servers": "mock:9092", "test.mock.num.brokers": "1", "message.max.bytes": 2_000_000}
    return Producer(settings, logger=logging.getLogger("mock"))


@pytest.fixture
def output(broker):
    def sent(topic, values):
        for value in values:
            broker.produce(topic, value, partition=0)
        assert broker.flush(60) == 0
        [node] = broker.list_topics(timeout=10).brokers.values()
        return KafkaOutput(KafkaClient(f"{node.host}:{node.port}"), {topic: 1})

    return sent


def ids(output):
    return [each for batch in output.batches(["transaction_id"]) for each in batch.column(0).to_pylist()]


def rows(count, pad=""):
    return [json.dumps({"transaction_id": f"T{number}", "pad": pad}) for number in range(count)]


def test_all_records_are_rows(output):
    found = output("whole", rows(10))
    assert (found.rows, found.deleted, found.columns) == (10, 0, ["transaction_id", "pad"])
    assert ids(found) == [f"T{number}" for number in range(10)]


def test_of_a_topic_whose_first_records_were_deleted_the_others_are_rows(output):
    found = output("short", rows(120, "x" * 100_000))

    assert 0 < found.deleted < 120
    assert found.rows == 120 - found.deleted
    assert ids(found) == [f"T{number}" for number in range(found.deleted, 120)]
    notes = check("dedup_transactions", found, VerifyInput(manifest_of(100))).notes
    assert f"Kafka has deleted {found.deleted} records of the topic, which are missed here" in notes


@pytest.mark.parametrize(("topic", "value"), [("text", "not json"), ("list", "[1]"), ("number", "5")])
def test_a_record_that_is_no_object_is_told_with_its_place(output, topic, value):
    told = refusal_of(output, topic, ['{"a": 1}', value])
    assert told == f"cannot read topic {topic}: the record at offset 1 of partition 0 is not a JSON object"


def test_values_that_are_no_column_are_told(output):
    found = output("mixed", ['{"amount": 1.5}', '{"amount": "x"}'])
    told = refusal_of(lambda: list(found.batches(["amount"])))
    assert told == "cannot read topic mixed: the values of amount have different types"
