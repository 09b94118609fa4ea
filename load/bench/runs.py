"""Saturated runs of one ledger job, bare or attached, in one Spark session: all rows wait for it at the start."""

import shutil
import statistics
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from load.bench.usage import Cpu, Meter, heap

SCRAPE_SECONDS = 5.0
MAX_EVENTS_MS = 60_000  # for Spark's listeners to hear of all that has happened
BATCHES = 10  # of a run, by default
BARE, AGAIN, ATTACHED, INSTRUMENTED = "bare", "bare again", "attached", "instrumented"
Done = TypeVar("Done")
Open = Callable[[Path, int, int], Mapping[str, Any]]  # folder, rows and rows of a batch -> a job's inputs


@dataclass(frozen=True)
class Run:
    """One run: rows, wall seconds, seconds of each batch after the first, CPU, heap in MiB, seconds by phase.

    `serving` are CPU seconds of the driver and of the JVM's threads that serve it: those in which an observer works.
    """

    rows: int
    seconds: float
    batches: Sequence[float]
    cpu: Cpu
    heap: float
    phases: Mapping[str, float]
    serving: float = 0.0

    @property
    def rate(self) -> float:
        """Rows a second over the whole run."""
        return self.rows / self.seconds


@dataclass
class Runs:
    """Runs of `job` on the rows that `inputs` opens; what they write is removed after each."""

    spark: Any
    folder: Path
    job: str
    inputs: Open
    batches: int = BATCHES
    callbacks: list[float] = field(default_factory=list)  # ms in the listener's thread, of attached runs
    count: int = 0

    def run(self, kind: str, rows: int) -> Run:
        """Runs the job once on `rows` rows. `kind` says whether it is bare, attached or instrumented."""
        import ledgerops

        self.count += 1
        folder = self.folder / f"{self.job}-{self.count}"
        folder.mkdir(parents=True)
        frames = dict(self.inputs(folder, rows, rows // self.batches))
        if kind == INSTRUMENTED:
            frames["transactions"] = ledgerops.instrument(
                frames["transactions"], event_time="event_time", key="customer_id"
            )
        with self._watched(folder) if kind in (ATTACHED, INSTRUMENTED) else nullcontext():
            meter, began = Meter(), time.perf_counter()
            query = self.start(folder, frames)
            query.awaitTermination()
            seconds = time.perf_counter() - began
            used, serving = meter.used(), meter.serving()
            live = heap(self.spark)
            progress = [each for each in query.recentProgress if each.numInputRows]
        phases: dict[str, float] = defaultdict(float)
        for each in progress:
            for phase, milliseconds in each.durationMs.items():
                phases[phase] += milliseconds / 1000
        shutil.rmtree(folder, ignore_errors=True)
        batches = [each.durationMs["triggerExecution"] / 1000 for each in progress[1:]]
        return Run(rows, seconds, batches, used, live, phases, serving)

    def start(self, folder: Path, frames: Mapping[str, Any]) -> Any:
        """Starts the job's query, which ends when it has read all rows. It writes to Parquet files."""
        return start_job(self.job, frames, folder, available_now=True)

    def rounds(
        self,
        kinds: Sequence[str],
        rows: int,
        count: int,
        say: Callable[[str], None],
        enough: Callable[[Mapping[str, list[Run]]], bool] = lambda seen: True,
        seconds: float = 0.0,
    ) -> dict[str, list[Run]]:
        """Runs of each kind, as `take_turns` has them."""

        def run(kind: str, number: int) -> Run:
            done = self.run(kind, rows)
            say(f"round {number + 1}, {self.job}, {kind}: {done.rate:,.0f} rows/s")
            return done

        return take_turns(run, kinds, count, enough, seconds)

    @contextmanager
    def _watched(self, folder: Path) -> Iterator[None]:
        import ledgerops
        from ledgerops.agent import listener

        original = listener.EventSink.take
        callbacks = self.callbacks

        def timed(sink: Any, kind: Any, fetch: Any) -> None:
            began = time.perf_counter()
            original(sink, kind, fetch)
            if kind == "progress":
                callbacks.append((time.perf_counter() - began) * 1000)

        listener.EventSink.take = timed  # type: ignore[method-assign, assignment]
        watch = ledgerops.attach(self.spark, port=0, recording=str(folder / "recording"))
        assert watch.url, watch.error
        stop = threading.Event()
        scraper = threading.Thread(target=_scrape, args=(f"{watch.url}/metrics", stop))
        scraper.start()
        try:
            yield
            # an event arrives some moments after its batch has ended
            self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(MAX_EVENTS_MS)
        finally:
            stop.set()
            scraper.join()
            watch.close()
            listener.EventSink.take = original  # type: ignore[method-assign]


def start_job(
    job: str, frames: Mapping[str, Any], folder: Path, trigger: float | None = None, available_now: bool = False
) -> Any:
    """The query of a job, which writes to Parquet files in `folder`, at a trigger interval in seconds."""
    from ledgerops.ledger.jobs import find_job
    from ledgerops.ledger.run.start import start
    from ledgerops.ledger.sinks import ParquetSink

    sink, checkpoint = ParquetSink(folder / "out"), folder / "checkpoint"
    return start(
        find_job(job), frames, sink=sink, checkpoint=checkpoint, trigger_seconds=trigger, available_now=available_now
    )


def take_turns(
    run: Callable[[str, int], Done],
    kinds: Sequence[str],
    count: int,
    enough: Callable[[Mapping[str, list[Done]]], bool] = lambda seen: True,
    seconds: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, list[Done]]:
    """By kind what `run` gives of it, once a round: `count` rounds, then more until `enough` or after `seconds`.

    What a run leaves behind may slow the next one down, so the order changes by `turn`.
    """
    seen: dict[str, list[Done]] = {kind: [] for kind in kinds}
    end = clock() + seconds
    number = 0
    while number < count or (clock() < end and not enough(seen)):
        for kind in turn(kinds, number):
            seen[kind].append(run(kind, number))
        number += 1
    return seen


def turn(kinds: Sequence[str], number: int) -> Sequence[str]:
    """The kinds in the order of a round: each has each place, and follows each other one, equally often.

    That needs as many rounds as there are kinds, or twice as many where that number is odd (Williams 1949).
    """
    count = len(kinds)
    zigzag = ((place + 1) // 2 if place % 2 else -place // 2 for place in range(count))
    order = [kinds[(step + number) % count] for step in zigzag]
    return order[::-1] if number // count % 2 else order


def embedded(spark: Any, tables: Sequence[str]) -> Open:
    """The embedded source, far enough back for all rows to be due; all customers come at once."""

    def opened(folder: Path, rows: int, batch: int) -> Mapping[str, Any]:
        from ledgerops.ledger.plan.plan import load_plan
        from ledgerops.ledger.sources.tables import open_source

        return {
            table: open_source(
                spark,
                table,  # type: ignore[arg-type]
                plan=load_plan("default"),
                origin=time.time() - 10 * 86400,
                rate=0.0 if table == "customers" else None,
                work_dir=folder,
                max_rows_per_trigger=batch,
                limit=None if table == "customers" else rows,
            )
            for table in tables
        }

    return opened


def rates(runs: Sequence[Run]) -> list[float]:
    """Rows a second of each run, in the order of the runs."""
    return [run.rate for run in runs]


def cpu_per_million(runs: Sequence[Run]) -> Cpu:
    """CPU seconds per million rows, each kind of process by its median."""
    return Cpu(*(statistics.median(run.cpu[part] * 1e6 / run.rows for run in runs) for part in range(3)))


def _scrape(url: str, stop: threading.Event) -> None:
    while not stop.wait(SCRAPE_SECONDS):
        with urllib.request.urlopen(url, timeout=10) as answer:
            answer.read()
