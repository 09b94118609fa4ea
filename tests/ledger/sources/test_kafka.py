"""Kafka as a source: where it begins, what it is asked, and what is read."""

import json
import socket
import threading
import time
import uuid
from datetime import UTC, datetime

import pytest
from confluent_kafka.admin import NewTopic

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.common.kafka_offsets import read_heads
from ledgerops.ledger.sources import kafka as source
from ledgerops.ledger.sources.kafka import Topics
from tests import topics
from tests.ledger.sources.streams import to_memory
from tests.refusals import refusal_of
from tests.tables import cases

HOUR = 3_600_000  # milliseconds


@cases(
    "text, options",
    ("earliest", "earliest", {"startingOffsets": "earliest"}),
    ("latest", "latest", {"startingOffsets": "latest"}),
    ("UTC", "2024-03-01T10:00:00Z", {"startingTimestamp": "1709287200000"}),
    ("another zone", "2024-03-01T12:00:00.250+02:00", {"startingTimestamp": "1709287200250"}),
    ("a day, UTC", "2024-03-01", {"startingTimestamp": "1709251200000"}),
)
def test_a_start_is_read(text, options):
    found = source.read_start(text)
    assert found.pop("startingOffsetsByTimestampStrategy", "latest") == "latest"
    assert found == options


@pytest.mark.parametrize("text", ["", "yesterday", "10:00", "1709287200000", "1969-12-31T00:00:00Z"])
def test_a_start_that_is_none_is_refused(text):
    assert refusal_of(source.read_start, text) == (
        f"invalid start: {text!r}; write earliest, latest or a time like 2024-03-01T10:00:00Z"
    )


@pytest.fixture
def bank(kafka):
    """The topics of customers and ad events under a prefix of their own, and a function that sends to them."""
    from confluent_kafka import Producer

    prefix, producer = f"s-{uuid.uuid4().hex[:8]}.", Producer(kafka.client.librdkafka())
    admin = reach(kafka.client)  # its answers end with it
    names = [prefix + name for name in source.TOPICS.values()]
    topics.make(admin, *(NewTopic(name, 2, 1) for name in names))

    def send(topic, value, at=0, key=b"k"):
        producer.produce(prefix + topic, key=key, value=value, timestamp=at)
        assert producer.flush(30) == 0

    return prefix, send


def test_the_cluster_tells_its_id_and_those_of_its_topics(kafka, bank):
    prefix, send = bank
    send("customers", b"{}")
    names = [f"{prefix}customers", f"{prefix}ad_events"]
    found = source.describe_cluster(kafka.client, names)

    heads = read_heads(kafka.client, found.partitions)

    assert found.id == reach(kafka.client).list_topics(timeout=10).cluster_id
    assert (found.partitions, len(set(found.topics.values()))) == (dict.fromkeys(names, 2), 2)
    assert source.describe_cluster(kafka.client, names) == found
    assert set(heads) == {(name, number) for name in names for number in ("0", "1")}
    assert sum(heads.values()) == 1


def test_topics_that_were_made_this_moment_have_heads(kafka):
    admin = reach(kafka.client)
    for _ in range(4):  # whose partitions may not have their leaders yet
        names = [f"new-{uuid.uuid4().hex[:12]}" for _ in range(5)]
        for done in admin.create_topics([NewTopic(name, 20) for name in names]).values():
            done.result(30)
        heads = read_heads(kafka.client, dict.fromkeys(names, 20))
        assert (len(heads), set(heads.values())) == (100, {0})


def test_a_topic_that_the_broker_hears_of_only_now_has_heads(kafka):
    admin, name = reach(kafka.client), f"new-{uuid.uuid4().hex[:12]}"
    maker = threading.Timer(0.3, topics.make, (admin, NewTopic(name, 2, 1)))
    maker.start()
    try:
        assert set(read_heads(kafka.client, {name: 2}).values()) == {0}
    finally:
        maker.join()


def test_topics_that_are_not_there_are_named_together(kafka, bank):
    prefix, _ = bank
    assert refusal_of(source.describe_cluster, kafka.client, [f"{prefix}customers", "no.such", "none.either"]) == (
        f"no topic no.such, none.either at {kafka.servers}; ledgerops topics creates the ledger's topics"
    )


def test_no_answer_is_one_line_within_the_time(server_jars):
    gone = KafkaClient("127.0.0.1:1")
    assert refusal_of(source.describe_cluster, gone, ["x"]) == "cannot reach Kafka at 127.0.0.1:1: connection refused"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        told = refusal_of(source.describe_cluster, KafkaClient(servers), ["x"], 0.5)
        assert told.startswith(f"cannot reach Kafka at {servers}: ") and "\n" not in told
        assert time.monotonic() - began < source.ANSWER_SECONDS, "the time that was given does not count"


def read(frame, column, name):
    return sorted(row[column] for row in to_memory(frame, name))


def customer(name):
    fields = dict.fromkeys(("sex", "first", "last", "email", "city", "state"), "x")
    at = "2013-01-01T00:00:00Z"
    return json.dumps({**fields, "customer_id": name, "district_id": 1, "updated_at": at}).encode()


@pytest.mark.spark
def test_rows_begin_at_their_time_and_rejects_come_from_every_topic(spark, kafka, bank):
    prefix, send = bank
    now = round(1000 * time.time())
    send("customers", customer("C1"), at=now - 2 * HOUR)
    send("customers", customer("C2"), at=now)
    send("ad_events", b"oh")
    send("transactions.debits", None)
    send("customers", customer("C3"), key=None)
    later = Topics(kafka.client, prefix, source.read_start(f"{datetime.fromtimestamp((now - HOUR) / 1000, UTC)}"))
    every = Topics(kafka.client, prefix)

    assert read(source.open_table(spark, later, "customers", None, "ledgerops_a"), "customer_id", "later") == ["C2"]
    assert read(source.open_table(spark, every, "customers", 1, "ledgerops_b"), "customer_id", "every") == ["C1", "C2"]
    found = read(source.open_table(spark, every, "rejects", None, "unused"), "reason", "refused")
    assert found == ["invalid_json", "null_key", "tombstone"]
    places = {row.topic.removeprefix(prefix): row.offset for row in spark.table("refused").collect()}
    assert places.keys() == {"ad_events", "transactions.debits", "customers"}
