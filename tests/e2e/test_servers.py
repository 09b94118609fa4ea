"""Brokers that are stopped, killed, asked for passwords or left behind."""

import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.errors import UserError
from ledgerops.servers.kafka import Kafka
from tests.paths import ROOT
from tests.programs import until

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
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
        return [message.value() for message in consumer.consume(count, LONG)]
    finally:
        consumer.close()


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

    assert "failed: " in str(error.value) or "stopped while starting" in str(error.value)


OWNER = """
import os, signal, sys
from pathlib import Path
from ledgerops.servers.kafka import Kafka

with Kafka(Path(sys.argv[1])) as broker:
    print(broker.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_broker_ends_with_the_process_that_started_it_though_that_is_killed(server_jars, tmp_path):
    command = [sys.executable, "-c", OWNER, str(tmp_path / "kafka")]
    owner = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=LONG)
    broker = int(owner.stdout)

    assert owner.returncode == -signal.SIGKILL
    try:
        until(lambda: not psutil.pid_exists(broker), 60, "the broker's end")
    finally:
        if psutil.pid_exists(broker):
            os.kill(broker, signal.SIGKILL)
