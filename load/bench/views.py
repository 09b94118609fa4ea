"""The Yahoo streaming benchmark: rows a second and core of `campaign_views`, from Kafka and from the embedded source.

All rows are there at the start; the same query counts both. From Kafka, rows are JSON that is read and checked.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from load.bench.lines import Line, compare
from load.bench.producer import send_process
from load.bench.runs import BARE, Run, Runs, embedded, rates
from load.bench.session import session

JOB, TABLE = "campaign_views", "ad_events"
ROWS = {"Kafka": 800_000, "the embedded source": 2_000_000}
ROUNDS = 3
CORES = 2  # of the session


def views(say: Callable[[str], None], rows: Mapping[str, int] = ROWS, rounds: int = ROUNDS) -> Iterator[Line]:
    """Yields the lines of the part: rows a second and core for each source, over `rounds` rounds."""
    from ledgerops.ledger.sources.topics import create
    from ledgerops.servers.jars import connector_jars
    from ledgerops.servers.kafka import Kafka

    jars = ",".join(map(str, connector_jars()))
    with tempfile.TemporaryDirectory() as name, Kafka(Path(name) / "kafka") as kafka:
        create(kafka.client)
        sent = send_process(kafka.servers, TABLE, TABLE, rows["Kafka"])
        say(f"{rows['Kafka']:,} records sent at {sent.rate:,.0f} a second")
        spark = session(Path(name), {"spark.jars": jars})
        kinds = {
            "Kafka": Runs(spark, Path(name) / "from-kafka", JOB, _from_kafka(spark, kafka)),
            "the embedded source": Runs(spark, Path(name) / "embedded", JOB, embedded(spark, (TABLE,))),
        }
        for kind, runs in kinds.items():
            runs.run(BARE, rows[kind])
        seen: dict[str, tuple[list[Run], list[Run]]] = {kind: ([], []) for kind in kinds}
        for number in range(rounds):
            for again in (0, 1):
                for kind, runs in kinds.items():
                    done = runs.run(BARE, rows[kind])
                    seen[kind][again].append(done)
                    say(f"round {number + 1} of {rounds}, from {kind}: {done.rate:,.0f} rows/s")
        spark.stop()
    for kind, (one, two) in seen.items():
        yield _line(kind, one, two)


def _line(kind: str, one: Sequence[Run], two: Sequence[Run]) -> Line:
    both = [*one, *two]
    rate = statistics.median(rates(both))
    used = statistics.median(run.cpu.total * 1e6 / run.rows for run in both)
    workers = statistics.median(run.cpu.workers * 1e6 / run.rows for run in both)
    return Line(
        f"`{JOB}` saturated, from {kind}",
        f"{rate / CORES:,.0f} rows/s a core ({rate:,.0f} on {CORES}), {used:.2f} CPU s per million rows, "
        f"{workers:.2f} of them in Python workers",
        compare(rates(one), rates(two), rates(one)).floor,
    )


def _from_kafka(spark: Any, kafka: Any) -> Callable[[Path, int, int], Mapping[str, Any]]:
    def opened(folder: Path, rows: int, batch: int) -> Mapping[str, Any]:
        from ledgerops.ledger.sources.kafka import Topics, open_table

        return {TABLE: open_table(spark, Topics(kafka.client), TABLE, batch, f"{folder.name}-observed")}

    return opened
