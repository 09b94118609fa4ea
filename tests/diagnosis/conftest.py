"""`history` builds the view of a query from only what a case is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import floor
from typing import Any

import pytest

from ledgerops.model.history import History
from ledgerops.model.records import (
    Executor,
    ExecutorShare,
    Host,
    Plan,
    Progress,
    Running,
    SourceProgress,
    StageSummary,
    StateOperator,
    TaskSummary,
)
from ledgerops.model.sources import kind_of
from ledgerops.signals.query_view import QueryView

START = 1_790_000_000.0  # a round instant in 2026
TOPIC = "transactions"
MakeView = Callable[..., QueryView]


def stage(
    name: str = "save",
    records: Sequence[float] = (500, 500),
    seconds: Sequence[float] = (0.5, 0.5),
    shuffle: bool = True,
    began: float = 0.0,
    wall: float | None = None,
    cpu: float = 0.9,
    executors: Mapping[str, tuple[int, float]] | None = None,
    gc: float = 0.0,
    spill: int = 0,
    failed: tuple[int, float, str | None] = (0, 0.0, None),
    ready: float | None = None,
) -> Mapping[str, Any]:
    """A stage by what each of its tasks read and took; `began` seconds into add_batch, and `ready` where it is known
    when its tasks could have begun; `cpu` a share of run time, `executors` the tasks and run seconds of each, `gc` a
    share of run time, `spill` in bytes, `failed` the attempts that failed, their seconds and the exception."""
    return {
        "name": name,
        "records": records,
        "seconds": seconds,
        "shuffle": shuffle,
        "began": began,
        "wall": max(seconds) if wall is None else wall,
        "cpu": cpu,
        "gc": gc,
        "spill": spill,
        "failed": failed,
        "ready": ready,
        "executors": executors or {"driver": (len(records), sum(seconds))},
    }


def _stage(number: int, what: Mapping[str, Any], add_batch_began: float) -> StageSummary:
    records, seconds = sorted(what["records"]), sorted(what["seconds"])
    began = add_batch_began + what["began"]
    return StageSummary(
        stage_id=number,
        name=what["name"],
        tasks=len(records),
        failed_tasks=what["failed"][0],
        failed_seconds=what["failed"][1],
        failure=what["failed"][2],
        submitted=None if what["ready"] is None else add_batch_began + what["ready"],
        started=began,
        ended=began + what["wall"],
        run_seconds=sum(seconds),
        cpu_seconds=sum(seconds) * what["cpu"],
        gc_seconds=sum(seconds) * what["gc"],
        seconds_median=seconds[len(seconds) // 2],
        seconds_max=seconds[-1],
        records=int(sum(records)),
        records_median=records[len(records) // 2],
        records_max=records[-1],
        reads_shuffle=what["shuffle"],
        input_bytes=0,
        shuffle_read_bytes=0,
        shuffle_write_bytes=0,
        spill_bytes=what["spill"],
        executors={
            name: ExecutorShare(tasks, took, int(sum(records) * tasks / len(records)))
            for name, (tasks, took) in what["executors"].items()
        },
    )


def observed_by_name(view: QueryView, observed: Sequence[Mapping[str, Any]]) -> QueryView:
    """The view whose newest batches made these observations, by their names."""
    batches = view.history.batches
    for place, each in enumerate(observed, len(batches) - len(observed)):
        batches[place] = replace(batches[place], observed=each)
    return QueryView(view.history, view.now, view.hosts, view.others)


@pytest.fixture
def history() -> MakeView:
    """Batches of one query, each beginning when its trigger is due (at multiples of the interval, as Spark's are) or,
    where that is over, when the one before it has ended.

    Sequences have one entry a batch; `seconds` is the batch duration, `backlog` what is left (one number, or one a
    partition), `heads` rows that arrive in each partition during the batch before. `warm` quiet batches come before,
    so that a case begins with a query that has settled; `warm_stages` are the stages of each of these. `python` is the
    time in Python workers of every batch with stages, `gc` what each executor collected in the last 20 s, `source` how
    Spark describes the source.
    """

    def make(
        seconds: Sequence[float] = (),
        rows: Sequence[int] | int = 1000,
        backlog: Sequence[int | Sequence[int]] | None = None,
        read: Sequence[Sequence[int]] | None = None,
        interval: float | None = 2.0,
        phases: Sequence[Mapping[str, float]] | None = None,
        stages: Sequence[Sequence[Mapping[str, Any]]] | None = None,
        warm_stages: Sequence[Mapping[str, Any]] | None = None,
        python: float | None = None,
        operators: Sequence[Mapping[str, Any]] | None = None,
        observed: Sequence[Mapping[str, Any]] | None = None,
        watermark: Sequence[float | None] | None = None,
        event_time_max: Sequence[float | None] | None = None,
        plan: Mapping[str, Any] | None = None,
        source: str = TOPIC,
        running: float | None = None,
        message: str = "Processing new data",
        exception: str | None = None,
        error_class: str | None = None,
        stopped: bool = False,
        idle: bool = False,
        quiet_for: float = 0.0,
        cores: int | Mapping[str, int] | None = 64,
        gc: float = 0.0,
        warm: int = 6,
        warm_rows: int = 1000,
        warm_seconds: float = 1.0,
        per_offset: float = 1.0,
    ) -> QueryView:
        past = History("daily_counts")
        past.start(START, "id-1", "run-1")
        told_plan = {"trigger": "processing_time", "trigger_interval": interval} | dict(plan or {})
        past.plan = Plan("run-1", **told_plan)
        count = len(seconds)
        each_rows = [rows] * count if isinstance(rows, int) else list(rows)
        partitions = len(read[0]) if read else 1
        at = began = START + 0.1
        consumed = [0] * partitions
        for number in range(warm + count):
            index = number - warm
            quiet = index < 0
            took = warm_seconds if quiet else seconds[index]
            n = warm_rows if quiet else each_rows[index]
            reads = [n // partitions] * partitions if quiet or read is None else list(read[index])
            begin = dict(enumerate(consumed))
            consumed = [before + round(more / per_offset) for before, more in zip(consumed, reads, strict=True)]
            left = 0 if quiet or backlog is None else backlog[index]
            lefts = [left // partitions] * partitions if isinstance(left, int) else list(left)
            read_now = SourceProgress(
                name=TOPIC,
                description=source,
                kind=kind_of(source, None).name,
                rows=sum(reads),
                start={(TOPIC, str(p)): begin[p] for p in begin},
                end={(TOPIC, str(p)): offset for p, offset in enumerate(consumed)},
                latest={(TOPIC, str(p)): consumed[p] + lefts[p] for p in range(partitions)},
                metrics={},
            )
            told = None if quiet or operators is None else operators[index]
            state = () if told is None else (_operator(told),)
            batch = Progress(
                query=past.query,
                query_id="id-1",
                run_id="run-1",
                batch_id=number,
                started=at,
                duration=took,
                rows=sum(reads),
                phases={"add_batch": took * 0.8} if quiet or phases is None else phases[index],
                sources=(read_now,),
                operators=state,
                sink="Parquet",
                output_rows=None,
                watermark=None if quiet or watermark is None else watermark[index],
                event_time_min=None,
                event_time_avg=None,
                event_time_max=None if quiet or event_time_max is None else event_time_max[index],
                observed={} if quiet or observed is None else {"ledgerops": observed[index]},
            )
            past.add(batch)
            ran = warm_stages if quiet else None if stages is None else stages[index]
            if ran is not None:
                summary = tuple(_stage(place, what, at + 0.1) for place, what in enumerate(ran))
                past.add_tasks(TaskSummary("run-1", number, summary, python))
            due = at if not interval else began + interval * (1 + floor((at - began) / interval + 1e-6))
            at = max(at + took, due)
        now = (past.last_progress or START) + quiet_for
        if running is not None:
            now += running
            past.set_running(Running(now, "run-1", now - running, message))
        if idle:
            past.idle(now)
        if exception or stopped:
            past.end(now, "run-1", exception, error_class)
        hosts = () if cores is None else (_host(now - 20, cores, 0.0), _host(now, cores, gc))
        return QueryView(past, now, hosts)

    return make


def _operator(told: Mapping[str, Any]) -> StateOperator:
    values: dict[str, Any] = {
        "name": "stateStoreSave",
        "rows": 0,
        "updated": 0,
        "removed": 0,
        "update_seconds": 0.0,
        "removal_seconds": 0.0,
        "commit_seconds": 0.0,
        "memory_bytes": 0,
        "dropped_rows": 0,
        "shuffle_partitions": 2,
        "custom": {},
        "snapshot_versions": {},
    }
    return StateOperator(**(values | dict(told)))


def _host(at: float, cores: int | Mapping[str, int], gc: float) -> Host:
    each = {"driver": cores} if isinstance(cores, int) else cores
    executors = tuple(Executor(name, True, count, 0, 0, 0, 0.0, gc, 0, 2**30) for name, count in each.items())
    return Host(at, sum(each.values()), None, 2**33, 2**32, None, None, (), executors)
