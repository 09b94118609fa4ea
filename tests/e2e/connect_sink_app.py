"""Run as a program: a Spark Connect client with four queries, three of them with a sink that obeys.

arguments: the server's address, that of its UI, the port of the exporter, and a folder. A file NAME in the folder is
the fault of that query's sink: `sleep SECONDS` in each batch, or `block`. `payments` and `invoices` write with
foreachBatch, `refunds` with foreach, `orders` nowhere.
"""

import sys
import time
from pathlib import Path

TRIGGER_SECONDS = 2
STARTS = 5  # of a query: a Connect server gives a Python process ten seconds to start, which no setting changes


def main() -> None:
    remote, ui, port, folder = sys.argv[1:]
    from pyspark.sql import SparkSession

    import ledgerops

    spark = SparkSession.builder.remote(remote).appName("shop").getOrCreate()
    ledgerops.attach(spark, port=int(port), host_interval=2.0, ui_url=ui)

    def obey(name: str) -> None:
        file = Path(folder, name)
        word, _, seconds = file.read_text().partition(" ") if file.exists() else ("", "", "")
        if word == "sleep":
            time.sleep(float(seconds))
        while word == "block" and file.exists():
            time.sleep(0.2)

    def writer(name: str):  # type: ignore[no-untyped-def]
        rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load().coalesce(1)
        checkpoint = str(Path(folder, "checkpoints", name))
        of = rows.writeStream.queryName(name).option("checkpointLocation", checkpoint)
        return of.trigger(processingTime=f"{TRIGGER_SECONDS} seconds")

    def by_batch(name: str):  # type: ignore[no-untyped-def]
        def write(batch, number: int) -> None:  # type: ignore[no-untyped-def]
            batch.write.format("noop").mode("append").save()
            obey(name)

        return write

    class ByRow:
        """One connection a task, and a fault with its first row."""

        def open(self, partition: int, epoch: int) -> bool:
            self.fresh = True
            return True

        def process(self, row: object) -> None:
            if self.fresh:
                obey("refunds")
            self.fresh = False

        def close(self, error: BaseException | None) -> None:
            pass

    makers = (
        lambda: writer("orders").format("noop"),
        lambda: writer("payments").foreachBatch(by_batch("payments")),
        lambda: writer("invoices").foreachBatch(by_batch("invoices")),
        lambda: writer("refunds").foreach(ByRow()),
    )
    for make in makers:
        for attempt in range(STARTS):
            try:
                make().start()
                break
            except Exception as error:
                late = any(each in str(error) for each in ("connect back", "OPEN_SOCKET"))
                if not late or attempt == STARTS - 1:
                    raise
    while True:  # until the test kills it
        time.sleep(1)


if __name__ == "__main__":
    main()
