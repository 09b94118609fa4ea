"""Run as a program, in the environment that is tried: attaches, runs queries with known faults, prints what was seen.

Arguments: classic or connect, and the rules and families after which it stops, where these are not all rules. The last
line of stdout is a JSON object: families of metrics that had samples, names of the rules that named their query, why
the session was not watched, where it was not, and notes on queries that could not be started.
"""

import json
import logging
import re
import sys
import time
import urllib.request
from collections.abc import Callable, Set
from pathlib import Path
from typing import Any

from ledgerops.servers.process import free_port, port_problem

MAX_SECONDS = 110.0  # for the findings; an idle machine needs fifty
MIN_SECONDS = 20.0  # in which families that come late have come
CORES = 6  # more than the queries hold while they sleep, so that none waits for another
MAX_STARTS = 5  # of a query, on a machine that is busy
CONNECT_PORT = 15002  # of every server that remote("local[N]") starts, so that there is one on a machine at a time
MAX_PORT_SECONDS = 240.0  # for another one to end
MAX_REASON_CHARACTERS = 300
# of the query whose sink becomes slow: Spark Connect does not say whose tasks a sink's are, so that its slowness shows
# only in comparison with the past
HEALTHY_BATCHES = 20
# the query that each rule must name, and what the rule is told by
FAULTS = {
    "query-failed": "failing",  # by the events of the listener
    "trigger-overrun": "overrun",  # by the trigger, which never waits
    "slow-sink": "slow_sink",  # by the phases of a batch and its tasks
    "python-bound": "python_udf",  # by Spark's UI
    "late-data": "windows",  # by event time and state
}


def main() -> None:
    """Tries the session that the arguments name, and prints what was seen."""
    connect = sys.argv[1] == "connect"
    logging.basicConfig(level=logging.WARNING)
    port = free_port()
    found: dict[str, Any] = {"families": [], "rules": []}
    try:
        spark = session(connect, port)
        import ledgerops
    except ImportError as error:  # this Spark does not run on this Python
        print(json.dumps({**found, "reason": line_of(error)}), flush=True)
        return
    # a Connect client is not told where the server's UI is
    watch = ledgerops.attach(spark, port=0, host_interval=2.0, ui_url=f"http://127.0.0.1:{port}" if connect else None)
    try:
        if watch.url is None:
            found["reason"] = str(watch.error)
        else:
            found["notes"] = start_queries(spark)
            found |= observe(watch.url, set(sys.argv[2:]) or FAULTS.keys())
            for query in json.loads(ask(f"{watch.url}/diagnosis"))["queries"]:
                said = [f"{each['rule']}: {each['summary']}" for each in query["findings"]]
                print(f"{query['query']}, {query['status']}: {'; '.join(said)}", file=sys.stderr)
        print(json.dumps(found), flush=True)
    finally:
        watch.close()
        spark.stop()


def session(connect: bool, ui_port: int) -> Any:
    """A session on this machine, whose UI is at `ui_port`."""
    import pyspark
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.remote(f"local[{CORES}]") if connect else SparkSession.builder.master(f"local[{CORES}]")
    )
    settings = {
        "spark.app.name": "compatibility",
        "spark.driver.memory": "1g",
        "spark.python.authenticate.socketTimeout": "60s",  # for a Python worker to connect; by default 15
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.port": str(ui_port),
        "spark.ui.showConsoleProgress": "false",
    }
    if connect:
        deadline = time.monotonic() + MAX_PORT_SECONDS
        while port_problem(CONNECT_PORT) is not None and time.monotonic() < deadline:
            time.sleep(1.0)
        if pyspark.__version__.startswith("3."):  # its wheel has no server
            package = f"org.apache.spark:spark-connect_2.12:{pyspark.__version__}"
            settings |= {"spark.jars.packages": package, "spark.jars.ivy": str(Path.cwd() / "ivy")}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def line_of(error: BaseException) -> str:
    """An exception in one line, without the files that it names."""
    said = re.sub(r" \(/[^)]*\)", "", " ".join(str(error).split()))
    return f"{type(error).__name__}: {said}"[:MAX_REASON_CHARACTERS]


def start_queries(spark: Any) -> list[str]:
    """One query that is healthy but for late rows, and one for each other fault. Returns which did not start, and why.

    Raises what a busy machine causes: Python workers that are too slow at every attempt.
    """
    from pyspark.sql import functions as F

    import ledgerops

    def rows(per_second: int) -> Any:
        return spark.readStream.format("rate").option("rowsPerSecond", per_second).option("numPartitions", 2).load()

    refused: list[str] = []

    def start(made: Callable[[], Any], name: str, trigger: str = "1 second") -> None:
        for attempt in range(MAX_STARTS):
            try:
                made().queryName(name).trigger(processingTime=trigger).start()
                return
            except Exception as error:
                # a Connect server gives a Python worker ten seconds to start, which no setting changes
                if not any(late in str(error) for late in ("connect back", "OPEN_SOCKET")):
                    refused.append(f"`{name}` did not start: {line_of(error)}")
                    return
                if attempt == MAX_STARTS - 1:
                    raise

    late = F.when(F.col("value") % 10 == 0, F.col("timestamp") - F.expr("INTERVAL 10 MINUTES"))
    timed = rows(100).withColumn("event_time", F.coalesce(late, F.col("timestamp"))).withColumn("key", F.lit("a"))
    seen = ledgerops.instrument(timed, "event_time", key="key")
    counts = seen.withWatermark("event_time", "5 seconds").groupBy(F.window("event_time", "5 seconds"), "value").count()
    start(lambda: counts.writeStream.format("noop").outputMode("append"), "windows", "2 seconds")

    def overrun(batch: Any, number: int) -> None:
        import time

        time.sleep(4.0)

    def slow_sink(batch: Any, number: int) -> None:
        import time

        batch.write.format("noop").mode("append").save()  # a batch that nobody reads has no rows, and no tasks
        time.sleep(4.0 if number >= HEALTHY_BATCHES else 0.0)

    def fail(batch: Any, number: int) -> None:
        raise ValueError("no such currency")

    def slow(value: int) -> int:
        import time

        time.sleep(0.02)
        return value

    start(lambda: rows(20).writeStream.foreachBatch(overrun), "overrun")
    start(lambda: rows(20).writeStream.foreachBatch(slow_sink), "slow_sink")
    start(lambda: rows(20).writeStream.foreachBatch(fail), "failing")
    # nine tenths of the time, so that batches take long and do not fall behind
    start(lambda: rows(45).coalesce(1).select(F.udf(slow, "long")("value")).writeStream.format("noop"), "python_udf")
    return refused


def observe(url: str, wanted: Set[str]) -> dict[str, Any]:
    """The families that had samples and the rules that named their query, until all wanted have or MAX_SECONDS."""
    families: set[str] = set()
    rules: set[str] = set()
    began = time.monotonic()
    while time.monotonic() - began < (MIN_SECONDS if wanted <= rules | families else MAX_SECONDS):
        time.sleep(1.0)
        metrics = ask(f"{url}/metrics")
        families.update(re.findall(r"^(ledgerops_\w+?)(?:_bucket|_count|_sum)?[{ ]", metrics, re.MULTILINE))
        for query in json.loads(ask(f"{url}/diagnosis"))["queries"]:
            named = {finding["rule"] for finding in query["findings"]}
            rules.update(rule for rule, name in FAULTS.items() if name == query["query"] and rule in named)
    return {"families": sorted(families), "rules": sorted(rules)}


def ask(url: str) -> str:
    """The text at a URL. Raises OSError."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


if __name__ == "__main__":
    main()
