import socket

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.errors import UserError
from ledgerops.servers.kafka import Kafka

pytestmark = pytest.mark.spark  # a JVM, though not Spark's

LIST = "org.apache.kafka.tools.TopicCommand"
LONG = 120  # seconds that nothing takes: on a busy machine a broker is slow to begin
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


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


def test_kafkas_own_tools_speak_with_the_broker(kafka, topic):
    described = kafka.tool(LIST, "--describe", "--topic", topic)

    assert f"Topic: {topic}" in described
    assert "PartitionCount: 5" in described


def test_a_tool_that_fails_says_why(kafka):
    with pytest.raises(UserError) as error:
        kafka.tool(LIST, "--describe", "--topic", "never-made")

    assert str(error.value).startswith("TopicCommand failed: ")
    assert "'never-made'" in str(error.value)


def test_data_outlive_a_stop_and_a_kill_on_the_same_port(server_jars, tmp_path):
    with Kafka(tmp_path / "kafka", {"log.retention.check.interval.ms": "1000"}) as own:
        servers, first = own.servers, own.pid
        admin = reach(own.client)  # its futures need it alive
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(LONG)
        produce(own.client, "t", [b"before"])
        own.stop()
        assert own.pid is None
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", own.port))
        own.start()
        produce(own.client, "t", [b"after a stop"])
        own.kill()
        own.start()
        produce(own.client, "t", [b"after a kill"])

        assert read(own.client, "t", 3) == [b"before", b"after a stop", b"after a kill"]
        assert own.servers == servers
        assert own.pid not in (None, first)
        own.pause()
        with pytest.raises(UserError, match="cannot reach Kafka"):
            reach(own.client, 1)
        own.resume()
        assert reach(own.client, LONG).list_topics(timeout=LONG).topics["t"]
    assert own.pid is None


def test_a_broker_with_passwords_lets_in_who_has_one(server_jars, tmp_path):
    options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ledger"}
    users = 'username="ledger" password="open \\"sesame" user_ledger="open \\"sesame";'
    properties = {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        # a properties file halves the backslashes
        "listener.name.client.plain.sasl.jaas.config": f"{LOGIN} {users}".replace("\\", "\\\\"),
    }
    with Kafka(tmp_path / "kafka", properties, {**options, "sasl.password": 'open "sesame'}) as own:
        assert reach(own.client).list_topics(timeout=10).brokers
        with pytest.raises(UserError) as error:
            reach(KafkaClient(own.servers, {**options, "sasl.password": "wrong"}))

    assert str(error.value).startswith(f"cannot reach Kafka at {own.servers}: ")
    assert "uthentication failed" in str(error.value)
    assert "wrong" not in str(error.value)


def test_a_broker_that_cannot_start_says_why(server_jars, tmp_path):
    with pytest.raises(UserError) as error, Kafka(tmp_path / "kafka", {"log.dirs": "/dev/null/x"}):
        pass

    assert "failed: " in str(error.value) or "ended at its start" in str(error.value)
