"""A query in real-time mode, from Kafka to Kafka: Spark's mode since 4.1."""

import time

import pyspark
import pytest

import ledgerops
from ledgerops.common.kafka import reach
from tests.agent.test_attach import value
from tests.programs import until
from tests.serving import fetched
from tests.topics import make

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(pyspark.__version__ < "4.1", reason="Spark 4.1 or later has this mode"),
]


def new_topics(kafka, partitions):
    """A new topic to read, and one to write."""
    from confluent_kafka.admin import NewTopic

    names = [f"real-time-{kind}-{time.time_ns()}" for kind in ("in", "out")]
    make(reach(kafka.client), *(NewTopic(name, partitions, 1) for name in names))
    return names


def start(spark, kafka, topics, folder, interval="20 seconds"):
    """A query that reports at this interval; by default it would be five minutes."""
    rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.servers)
    rows = rows.option("subscribe", topics[0]).option("startingOffsets", "earliest").load().selectExpr("key", "value")
    writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", kafka.servers)
    writer = writer.option("topic", topics[1]).option("checkpointLocation", str(folder)).queryName("realtime")
    return writer.outputMode("update").trigger(realTime=interval).start()


def produce(kafka, topic, count):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.servers})
    for number in range(count):
        producer.produce(topic, value=str(number))
    producer.flush(30)


def status(watch):
    return next(each for each in watch.status()["queries"] if each["query"] == "realtime")


def test_a_real_time_query_is_seen_and_is_not_behind_between_its_reports(spark, kafka, tmp_path):
    topics = new_topics(kafka, partitions=2)
    watch = ledgerops.attach(spark, port=0, kafka_servers=kafka.servers, kafka_interval=0.5)
    query = start(spark, kafka, topics, tmp_path / "checkpoint")
    try:
        produce(kafka, topics[0], 200)
        until(lambda: value(watch, "ledgerops_batches_total", query="realtime"), 120, "the first report")
        produce(kafka, topics[0], 300)
        until(lambda: (value(watch, "ledgerops_arrival_rows_per_second", query="realtime") or 0) > 0, 120)
        assert status(watch)["trigger"] == "real_time"
        assert status(watch)["verdict"]["summary"].startswith("real-time; reports every 20 s")
        assert value(watch, "ledgerops_query_backlog_offsets", query="realtime") == 0.0
        assert value(watch, "ledgerops_query_lag_seconds", query="realtime") == 0.0
        assert watch.diagnose()["queries"][0]["findings"] == []
        until(lambda: value(watch, "ledgerops_batches_total", query="realtime") >= 2, 120, "the second report")
        assert 'trigger="real_time 20s"' in fetched(f"{watch.url}/metrics", 60)
    finally:
        query.stop()
        watch.close()


def test_tasks_without_a_core_are_named_while_the_first_batch_runs(spark, kafka, tmp_path):
    topics = new_topics(kafka, partitions=5)  # on two cores
    watch = ledgerops.attach(spark, port=0)
    produce(kafka, topics[0], 50)
    query = start(spark, kafka, topics, tmp_path / "checkpoint", "30 seconds")

    def findings():
        return [each for query in watch.diagnose()["queries"] for each in query["findings"]]

    try:
        until(findings, 120, "the tasks that wait")
        assert value(watch, "ledgerops_batches_total", query="realtime") in (None, 0.0)
        [finding] = findings()
        assert finding["rule"] == "too-few-slots"
        assert finding["summary"].startswith("all 5 tasks of the query must run at once")
    finally:
        query.stop()
        watch.close()
