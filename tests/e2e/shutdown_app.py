"""Run as a program: a watched driver with a query at work, which ends in one of several ways.

arguments: the way (see WAYS), and the folder of the recording. Prints the last batch that was seen when it is ready.
"""

import signal
import sys
import threading
import time
from pathlib import Path

WAYS = ("end", "stop", "interrupt", "sigterm", "sigkill", "handler", "daemons")
SECONDS = 120.0


def main() -> None:
    way, folder = sys.argv[1], Path(sys.argv[2])
    from pyspark.sql import SparkSession

    import ledgerops

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    watch = ledgerops.attach(spark, port=0, recording=str(folder), host_interval=0.2)
    rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    in_batch = threading.Event()

    def slow(batch: object, number: int) -> None:
        if number >= 3:
            in_batch.set()
            time.sleep(0.5)

    rows.writeStream.foreachBatch(slow).queryName("ending").trigger(processingTime="100 milliseconds").start()
    assert in_batch.wait(SECONDS)
    deadline = time.monotonic() + SECONDS
    while not (seen := [each for each in watch.status()["queries"] if each["batch"]]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    print(seen[0]["batch"]["id"], flush=True)
    if way == "handler":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
    if way == "daemons":
        for _ in range(4):
            threading.Thread(target=ask_for_ever, args=(watch,), daemon=True).start()
        time.sleep(0.2)
    if way == "stop":
        spark.stop()
    if way in ("interrupt", "sigterm", "sigkill", "handler"):
        try:
            time.sleep(SECONDS)  # the signal comes in a batch
        except KeyboardInterrupt:
            sys.exit(8)  # PySpark has cancelled all jobs before


def ask_for_ever(watch: object) -> None:
    while True:
        watch.status()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
