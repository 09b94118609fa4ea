"""Queries that come and go: every few seconds one is started, stopped, made to fail, or restarted on its checkpoint."""

import random
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from load.bench.runs import start_job
from load.bench.session import start_noop

SLOTS = 8  # names, used again and again: as in a driver whose queries are restarted
FAILS_AFTER_ROWS = 300  # after some seconds
TRIGGER = "2 seconds"
Act = Literal["start", "stop", "fail", "restart"]
ACTS: tuple[Act, ...] = ("start", "stop", "fail", "restart")


def choose(draw: random.Random, running: Sequence[int], slots: int = SLOTS) -> tuple[Act, int]:
    """What happens next, and to which slot: about half of them run on average. With none running, one is started."""
    idle = [slot for slot in range(slots) if slot not in running]
    act: Act = draw.choice(ACTS)
    if not running and act in ("stop", "restart"):
        act = "start"
    if not idle and act in ("start", "fail"):
        act = "stop"
    return act, draw.choice(list(running) if act in ("stop", "restart") else idle)


class Churn:
    """The queries of a soak: one that stays, a windowed count of the ledger, and SLOTS that come and go."""

    def __init__(self, spark: Any, folder: Path, done: Counter[str], seed: int = 7) -> None:
        self.spark, self.folder = spark, folder
        self.done = done  # how often each act was done
        self._draw = random.Random(seed)
        self._queries: dict[int, Any] = {}
        self._steady: Any = None

    @property
    def alive(self) -> int:
        """Number of queries that run now, the steady one included."""
        return len(self._running()) + bool(self._steady and self._steady.isActive)

    @property
    def steady(self) -> bool:
        """Whether the query that is left alone still runs."""
        return bool(self._steady and self._steady.isActive)

    def begin(self) -> None:
        """Starts the steady query."""
        from ledgerops.ledger.plan.plan import load_plan
        from ledgerops.ledger.sources.tables import open_source

        folder = self.folder / "steady"
        frame = open_source(self.spark, plan=load_plan("default"), origin=time.time(), work_dir=folder)
        self._steady = start_job("daily_counts", {"transactions": frame}, folder, trigger=2.0)

    def step(self) -> Act:
        """One change, of a kind and a query that the seed decides."""
        act, slot = choose(self._draw, self._running())
        if slot in self._queries:
            self._queries.pop(slot).stop()  # one that failed as well: until it has quite ended its name is taken
        if act != "stop":
            self._queries[slot] = self._start(slot, failing=act == "fail", anew=act != "restart")
        self.done[act] += 1
        return act

    def end(self) -> None:
        """Stops all queries."""
        for query in [*self._queries.values(), self._steady]:
            if query is not None:
                query.stop()

    def _running(self) -> list[int]:
        return [slot for slot, query in self._queries.items() if query.isActive]

    def _start(self, slot: int, failing: bool, anew: bool) -> Any:
        from pyspark.sql import functions as F

        checkpoint = self.folder / f"soak-{slot}"
        if anew:
            shutil.rmtree(checkpoint, ignore_errors=True)
        rows = self.spark.readStream.format("rate").option("rowsPerSecond", 50).load()
        if failing:
            failing_row = F.raise_error(F.lit("the soak lets it fail")).cast("boolean")
            rows = rows.where(F.when(F.col("value") < FAILS_AFTER_ROWS, F.lit(True)).otherwise(failing_row))
        if slot % 2:  # every second one keeps state
            rows = rows.withWatermark("timestamp", "4 seconds").groupBy(F.window("timestamp", "2 seconds")).count()
        return start_noop(rows, checkpoint, f"soak_{slot}", processingTime=TRIGGER)
