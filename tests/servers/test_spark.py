"""That Spark has the connector jars: it reads what a Python client wrote to Kafka, and a table of Postgres."""

import pytest
from confluent_kafka import Producer

pytestmark = pytest.mark.spark


def test_spark_reads_what_a_python_client_wrote(spark, kafka, topic):
    producer = Producer(kafka.client.librdkafka())
    for number in range(20):
        producer.produce(topic, f"value {number}", key=f"{number}")
    assert producer.flush(30) == 0

    table = spark.read.format("kafka").options(**kafka.client.spark()).option("subscribe", topic).load()
    rows = table.selectExpr("CAST(value AS STRING) AS value").collect()

    assert sorted(row.value for row in rows) == sorted(f"value {number}" for number in range(20))


def test_the_driver_of_postgres_is_there(spark, postgres):
    url = f"jdbc:postgresql://127.0.0.1:{postgres.port}/ledger?user=ledger"
    # without its name Java looks only among the drivers that it was started with
    driver = {"driver": "org.postgresql.Driver"}
    [row] = spark.read.jdbc(url, "(SELECT 42 AS x) AS t", properties=driver).collect()
    assert row.x == 42
