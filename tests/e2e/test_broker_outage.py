"""A query that reads a real broker, while the broker is away: named in time, and over by itself."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import ledgerops
from ledgerops.agent.watch import Watch
from ledgerops.common.kafka import reach
from ledgerops.servers.kafka import Kafka
from tests import topics
from tests.agent.brokers import committed
from tests.agent.test_attach import value
from tests.e2e.evening_app import PATIENT
from tests.programs import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
WITHIN = 30.0  # seconds from the broker's end until it is named
SLOW = 180.0  # seconds for what takes ten on an idle machine


@pytest.fixture
def broker(tmp_path: Path, server_jars: list[Path]) -> Iterator[Kafka]:
    """A broker with a topic of a day, to which somebody writes all the time."""
    from confluent_kafka.admin import NewTopic

    with Kafka(tmp_path / "kafka") as made:
        topics.make(reach(made.client), NewTopic("transactions", 2, 1, config={"retention.ms": "86400000"}))
        with topics.writing(made.client, "transactions", b"{}" * 10):
            yield made


def rules(watch: Watch) -> list[str]:
    return [finding["rule"] for query in watch.diagnose()["queries"] for finding in query["findings"]]


def test_a_broker_that_is_away_is_named_in_time_and_the_query_goes_on_when_it_is_back(spark, broker, tmp_path):
    asking = {"kafka_servers": broker.servers, "kafka_interval": 2, "commit_group": "ledgerops.{query}"}
    watch = ledgerops.attach(spark, port=0, recording=tmp_path / "recording", **asking)
    reader = spark.readStream.format("kafka").options(**broker.client.spark(), **PATIENT)
    rows = reader.option("subscribe", "transactions").option("startingOffsets", "earliest").load()
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).format("noop")
    query = writer.queryName("outage").trigger(processingTime="1 second").start()
    try:
        until(lambda: (value(watch, "ledgerops_batches_total", query="outage") or 0) >= 5, SLOW)
        partition = {"query": "outage", "topic": "transactions", "partition": "0"}
        headroom = until(lambda: value(watch, "ledgerops_retention_headroom_seconds", **partition))
        assert 85_800 < headroom <= 86_400
        until(lambda: (value(watch, "ledgerops_source_reachable", query="outage"), rules(watch)) == (1, []))

        broker.stop()
        until(lambda: "source-unreachable" in rules(watch), WITHIN)
        [told] = watch.diagnose()["queries"]
        assert [root["rule"] for root in told["root_causes"]] == ["source-unreachable"]
        assert value(watch, "ledgerops_source_reachable", query="outage") == 0

        before = value(watch, "ledgerops_batches_total", query="outage")
        broker.start()
        until(lambda: rules(watch) == [], SLOW)
        until(lambda: value(watch, "ledgerops_batches_total", query="outage") > before + 2, SLOW)
        assert query.isActive
        query.stop()
        until(lambda: committed(broker, "ledgerops.outage") == ended(query), SLOW)
    finally:
        query.stop()
        watch.close()


def ended(query) -> dict[tuple[str, str], int]:
    offsets = json.loads(query.lastProgress["sources"][0]["endOffset"].replace("'", '"'))["transactions"]
    return {("transactions", partition): offset for partition, offset in offsets.items()}
