"""The broker of a drill behind its proxy."""

import time

import pytest

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.common.kafka_offsets import read_heads
from ledgerops.drills.harness.broker import Broker
from ledgerops.drills.harness.proxy import Proxy
from ledgerops.errors import UserError
from ledgerops.servers.kafka import Kafka
from tests.programs import until

PLAN = "seed: 1\nstart: now\nphases: [{shape: constant, rate: 100}]\npartitions: {count: 2}\n"


TOPIC = "transactions"


@pytest.fixture
def broker(server_jars, tmp_path):
    with Broker(tmp_path / "kafka", proxied=True) as made:
        made.create({TOPIC: 2}, {"retention.ms": "60000"})
        yield made


def sent(broker):
    return sum(read_heads(broker.kafka.client, {TOPIC: 2}).values())


def test_a_load_is_sent_past_the_proxy_until_it_is_stopped_and_what_was_read_or_not_can_be_deleted(
    broker,
):
    assert broker.through.servers == f"127.0.0.1:{broker.proxy.port}" != broker.kafka.servers

    broker.produce(TOPIC, PLAN)
    broker.proxy.set(down=True)
    before = sent(broker)
    until(lambda: sent(broker) > before + 50, 120, "fifty records past the proxy")
    broker.stop_producers()
    assert broker.producers == []
    count = sent(broker)
    left = broker.delete_read_and_unread(TOPIC)
    assert sum(left.values()) == count

    broker.proxy.heal()
    broker.produce(TOPIC, PLAN, proxied=True)
    until(lambda: sent(broker) > count + 50, 120, "fifty records through the proxy")


def test_a_broker_behind_it_is_reached_through_it_only(server_jars, tmp_path):
    from confluent_kafka import Producer
    from confluent_kafka.admin import NewTopic

    with Proxy() as proxy, Kafka(tmp_path / "kafka", proxied=proxy.port) as broker:
        proxy.target = broker.behind
        through = KafkaClient(f"127.0.0.1:{proxy.port}")
        admin = reach(through)
        assert [each.port for each in admin.list_topics(timeout=10).brokers.values()] == [proxy.port]
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)
        before = proxy.answers
        producer = Producer(through.librdkafka())
        producer.produce("t", b"hello")
        assert producer.flush(30) == 0
        assert proxy.answers > before
        proxy.set(latency=0.4)
        began = time.monotonic()
        admin.list_topics(timeout=10)
        assert time.monotonic() - began >= 0.4
        proxy.set(down=True)
        with pytest.raises(UserError, match="cannot reach Kafka"):
            reach(through, 1)
        assert [each.port for each in reach(broker.client).list_topics(timeout=10).brokers.values()] == [broker.port]
