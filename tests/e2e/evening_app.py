"""Run as a program: an application of an evening (tests/e2e/evening.py), with a query for each name that it is given.

arguments: the application's name, the port of its exporter, a folder, the broker or -, the master, and the names of the
queries. A file NAME in the folder is the fault of that query's sink: `sleep SECONDS` in each write, or `block`. SIGTERM
ends it as a service manager does.
"""

import signal
import sys
import time
from pathlib import Path

TRIGGER_SECONDS = 5  # a batch takes half a second on an idle machine
PATIENT = {  # Spark's own source gives up after a minute
    "kafka.default.api.timeout.ms": "300000",
    "kafka.request.timeout.ms": "10000",
    "kafka.reconnect.backoff.max.ms": "1000",
}


def main() -> None:
    app, port, folder, broker, master, *queries = sys.argv[1:]
    from pyspark.sql import SparkSession

    import ledgerops
    from ledgerops.servers.jars import connector_jars
    from ledgerops.servers.java import SHORT_LIVED

    jars = ",".join(map(str, connector_jars())) if broker != "-" else ""
    conf = {"spark.driver.memory": "640m", "spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "1"}
    conf |= {"spark.ui.port": "0", "spark.ui.showConsoleProgress": "false", "spark.jars": jars}
    conf["spark.executor.extraJavaOptions"] = SHORT_LIVED
    spark = SparkSession.builder.master(master).appName(app).config(map=conf).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    servers = broker if broker != "-" else None
    ledgerops.attach(spark, port=int(port), host_interval=2.0, kafka_interval=2.0, kafka_servers=servers)
    spark.range(10).repartition(1).count()  # the first batch is to find the executor at work
    for query in queries:
        rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
        if broker != "-":
            kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).options(**PATIENT)
            rows = kafka.option("subscribe", "events").option("startingOffsets", "latest").load()
        writer = rows.writeStream.foreachBatch(sink(Path(folder, query))).queryName(query)
        writer = writer.option("checkpointLocation", str(Path(folder, "checkpoints", query)))
        writer.trigger(processingTime=f"{TRIGGER_SECONDS} seconds").start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:  # its end is the operator's
        time.sleep(1)


def sink(fault: Path):  # type: ignore[no-untyped-def]
    """A sink that counts its rows, after the fault that the file names."""

    def write(batch, number: int) -> None:  # type: ignore[no-untyped-def]
        batch.count()
        word, _, seconds = fault.read_text().partition(" ") if fault.exists() else ("", "", "")
        if word == "sleep":
            time.sleep(float(seconds))
        while word == "block" and fault.exists():
            time.sleep(0.2)

    return write


if __name__ == "__main__":
    main()
