import os

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ledgerops.common.kafka import reach
from ledgerops.errors import UserError

pytestmark = pytest.mark.spark  # a JVM, though not Spark's

LIST = "org.apache.kafka.tools.TopicCommand"
LONG = 120  # seconds that nothing takes: on a busy machine a broker is slow to begin


def produce(client, topic, values):
    producer = Producer(client.librdkafka())
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(LONG) == 0


def read(client, topic, count):
    """The first `count` values of partition 0."""
    consumer = Consumer(client.librdkafka(**{"group.id": "reader", "enable.auto.commit": False}))
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(count, LONG)
        return [message.value() for message in messages]
    finally:
        consumer.close()


def test_a_topic_keeps_what_it_is_given(kafka, topic):
    produce(kafka.client, topic, [b"a", b"b"])
    assert read(kafka.client, topic, 2) == [b"a", b"b"]


def test_each_topic_is_new(make_topic):
    assert make_topic() != make_topic(partitions=1, **{"cleanup.policy": "compact"})


def test_topics_are_not_made_by_naming_them(kafka):
    admin = reach(kafka.client)
    assert admin.list_topics("never-made", timeout=10).topics["never-made"].error is not None
    assert "never-made" not in admin.list_topics(timeout=10).topics


def test_its_jvm_has_the_options_of_the_variable_that_kafkas_own_scripts_read(kafka):
    assert {*os.environ["KAFKA_OPTS"].split()} <= {*psutil.Process(kafka.pid).cmdline()}


def test_kafkas_own_tools_speak_with_the_broker(kafka, topic):
    described = kafka.tool(LIST, "--describe", "--topic", topic)
    assert f"Topic: {topic}" in described
    assert "PartitionCount: 5" in described


def test_a_tool_that_fails_says_why(kafka):
    with pytest.raises(UserError) as error:
        kafka.tool(LIST, "--describe", "--topic", "never-made")
    assert str(error.value).startswith("TopicCommand failed: ")
    assert "'never-made'" in str(error.value)
