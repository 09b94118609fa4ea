"""What being watched costs a query from one Delta table to another, and what the collector asks of the file system."""

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from load.bench.lines import Line
from load.bench.overhead import Say, compared
from load.bench.runs import AGAIN, ATTACHED, BARE, Runs
from load.bench.session import session

ROWS, BATCHES, ROUNDS = 100_000, 10, 5
JOB = "silver"


class TableRuns(Runs):
    """Runs of a copy from one Delta table to another, a version a batch."""

    def start(self, folder: Path, frames: Mapping[str, Any]) -> Any:
        """Starts the copy, which ends when it has read all versions."""
        writer = frames["bronze"].writeStream.format("delta").queryName(JOB)
        writer = writer.option("path", str(folder / "out")).option("checkpointLocation", str(folder / "checkpoint"))
        return writer.trigger(availableNow=True).start()


@contextmanager
def noted_requests() -> Iterator[list[str]]:
    """The names of what the collector asks of the driver's file system meanwhile."""
    from ledgerops.agent.hadoop_files import HadoopFiles

    asked: list[str] = []

    def noted(name: str, ask: Any) -> Any:
        def note_and_ask(*args: Any) -> Any:
            asked.append(name)
            return ask(*args)

        return note_and_ask

    requests = {name: getattr(HadoopFiles, name) for name in ("exists", "status", "read")}
    try:
        for name, ask in requests.items():
            setattr(HadoopFiles, name, noted(name, ask))
        yield asked
    finally:
        for name, ask in requests.items():
            setattr(HadoopFiles, name, ask)


def tables(say: Say, rows: int = ROWS, rounds: int = ROUNDS) -> Iterator[Line]:
    """A copy from one Delta table to another, bare and attached in turns."""
    from ledgerops.ledger.sinks.delta import CONF
    from ledgerops.servers import jars

    with tempfile.TemporaryDirectory() as name:
        spark = session(Path(name), {**CONF, "spark.jars": ",".join(map(str, jars.delta_jars()))})
        bronze = str(Path(name) / "bronze")
        for _ in range(BATCHES):
            few = spark.range(rows // BATCHES).selectExpr("id", "uuid() AS text").coalesce(1)
            few.write.format("delta").mode("append").save(bronze)

        def opened(folder: Path, rows: int, batch: int) -> Mapping[str, Any]:
            reader = spark.readStream.format("delta").option("startingVersion", 0).option("maxFilesPerTrigger", 1)
            return {"bronze": reader.load(bronze)}

        runs = TableRuns(spark, Path(name), JOB, opened)
        runs.run(ATTACHED, rows)
        began = time.monotonic()
        with noted_requests() as requests:
            seen = runs.rounds((BARE, AGAIN, ATTACHED), rows, rounds, say)
        watched = sum(run.seconds for run in seen[ATTACHED])
        say(f"{time.monotonic() - began:.0f} s for all rounds")
        spark.stop()
    yield from compared(JOB, seen)
    yield Line(
        "requests a minute to the file system, of a reader and writer that never waits",
        f"{len(requests) / watched * 60:.0f} ({len(requests)} in {watched:.0f} s, {rounds * BATCHES} batches)",
    )
