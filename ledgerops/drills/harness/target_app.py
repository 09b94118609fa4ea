"""The driver of a drill: a process with real queries, attached like any application, that does not know the truth.

`ledgerops.drills.target` runs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ledgerops
from ledgerops.drills.harness.fault_control import ControlledSink, FaultControl
from ledgerops.ledger.run.start import start
from ledgerops.ledger.sinks import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ledgerops import Watch
    from ledgerops.ledger.sources.tables import Table

APP = "ledgerops drill"  # dashboards mark this name; it must not say which drill it is
TRIGGER_SECONDS = 2.0
KEYS = {"transactions": "customer_id", "ad_events": "ad_id"}
POLL_SECONDS = 0.1  # of the driver's loop
RESTART_SECONDS = 1.0  # from the failure of a supervised query to its restart

Starter = Callable[[], "StreamingQuery"]


@dataclass
class Kept:
    """A supervised query: how to start it again, and when it failed."""

    query: StreamingQuery
    again: Starter | None = None
    deaths: list[float] = field(default_factory=list)
    exception: str | None = None
    seen_dead: bool = False


class TargetApp:
    """The tools of a drill's `start`, in the driver."""

    def __init__(self, folder: Path, drill: str, names: Mapping[str, str], seed: int, settings: Mapping[str, Any]):
        self.folder, self.drill, self.names, self.seed = folder, drill, names, seed
        self.control = FaultControl(folder / "control.json")
        self.kept: dict[str, Kept] = {}
        self.each_turn: list[Callable[[], None]] = []  # called ten times a second by the driver's main thread
        self.settings = settings  # from the drill's `prepare`, such as addresses of servers
        self.origin = 0.0
        self.spark: SparkSession
        self.watch: Watch

    def rows(
        self,
        plan: str,
        table: Table = "transactions",
        *,
        max_rows: int | None = None,
        origin: float | None = None,
        label: str | None = None,
    ) -> DataFrame:
        """A stream of the embedded source by a load plan (YAML text), instrumented as by `ledgerops run`. `label`
        distinguishes the observations of two sources of one query."""
        from ledgerops.ledger.plan.plan import parse_plan
        from ledgerops.ledger.sources.tables import open_source

        rows = open_source(
            self.spark,
            table,
            plan=parse_plan(plan, f"{self.drill}.yaml"),
            work_dir=self.folder / "work",
            origin=self.origin if origin is None else origin,
            max_rows_per_trigger=max_rows,
        )
        if table not in KEYS:
            return rows
        return ledgerops.instrument(rows, event_time="event_time", key=KEYS[table], name=label)

    def job(
        self,
        name: str,
        inputs: Mapping[str, DataFrame],
        *,
        role: str = "main",
        trigger: float = TRIGGER_SECONDS,
        lateness: str | None = None,
        sink: Sink | None = None,
        available_now: bool = False,
        keep: bool = False,
        transform: Callable[..., DataFrame] | None = None,
    ) -> StreamingQuery:
        """Starts a job of the ledger under a random name. `keep`: restart it when it fails. `transform` replaces
        the job's own, for a drill whose fault is in the query."""
        from ledgerops.ledger.jobs import JOBS

        [known] = [job for job in JOBS if job.name == name]
        job = replace(known, name=self.names[role], transform=transform or known.transform)

        def begin() -> StreamingQuery:
            return start(
                job,
                inputs,
                sink=sink or self.sink(role),
                checkpoint=self.checkpoint(role),
                trigger_seconds=trigger,
                available_now=available_now,
                fingerprint=self.drill,
                lateness=lateness,
            )

        return self.run(role, begin, keep=keep)

    def query(
        self,
        rows: DataFrame,
        *,
        role: str = "main",
        trigger: float = TRIGGER_SECONDS,
        mode: str = "append",
        write: Callable[[DataFrame, int], None] | None = None,
        sink: str | None = None,
        location: str | None = None,
        keep: bool = False,
    ) -> StreamingQuery:
        """Starts a query of the drill's own under a random name; it writes to the drill's sink, by `write`, or to a
        `sink` of Spark's own, such as noop. `location`: of its checkpoint, where that is not a plain folder."""

        def begin() -> StreamingQuery:
            writer = rows.writeStream
            own = self.sink(role).write_batch
            return (
                (writer.format(sink) if sink is not None else writer.foreachBatch(write or own))
                .queryName(self.names[role])
                .outputMode(mode)
                .option("checkpointLocation", location or str(self.checkpoint(role)))
                .trigger(processingTime=f"{round(trigger * 1000)} milliseconds")
                .start()
            )

        return self.run(role, begin, keep=keep)

    def run(self, role: str, begin: Starter, keep: bool = False) -> StreamingQuery:
        """Starts a query by a function of the drill's own."""
        query = begin()
        self.kept[role] = Kept(query, begin if keep else None)
        return query

    def sink(self, role: str = "main", before: Any = None) -> ControlledSink:
        """The sink of one role, logged to ROLE.sink.jsonl. `before` replaces the function that applies faults."""
        log = self.folder / f"{role}.sink.jsonl"
        return ControlledSink(self.control, log, before) if before else ControlledSink(self.control, log)

    def checkpoint(self, role: str = "main") -> Path:
        """Checkpoint folder of the query with this role."""
        return self.folder / "work" / "checkpoints" / role

    def turn(self) -> None:
        """Checks the queries once: notes failures and restarts supervised queries."""
        for kept in self.kept.values():
            if kept.query.isActive:
                continue
            if not kept.seen_dead:
                kept.seen_dead = True
                error = kept.query.exception()
                kept.exception = None if error is None else str(error)[:500]
                if error is not None:
                    kept.deaths.append(time.time())
            if kept.again is not None and kept.deaths and time.time() - kept.deaths[-1] >= RESTART_SECONDS:
                kept.query, kept.seen_dead = kept.again(), False
        for act in self.each_turn:
            act()

    def outcomes(self) -> dict[str, Any]:
        """By role: the text of the last exception, None without one, and the times of failures (epoch seconds)."""
        return {role: {"exception": kept.exception, "deaths": kept.deaths} for role, kept in self.kept.items()}
