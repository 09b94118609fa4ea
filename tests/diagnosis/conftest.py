"""`history` builds the view of a query from only what a case is about."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import floor
from typing import Any

import pytest

from ledgerops.model.finding import Finding
from ledgerops.model.history import History
from ledgerops.model.records import (
    Executor,
    ExecutorShare,
    Host,
    Plan,
    Running,
    SourceProgress,
    StageSummary,
    StateOperator,
    TaskSummary,
)
from ledgerops.model.sources import kind_of
from ledgerops.signals.query_view import QueryView
from tests.build import batch, operator

START = 1_790_000_000.0  # a round instant in 2026
TOPIC = "transactions"
MakeView = Callable[..., QueryView]
Stages = Sequence[StageSummary]


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
    writes: bool = False,
) -> StageSummary:
    """A stage by what each of its tasks read and took; `began` seconds into add_batch, and `ready` where it is known
    when its tasks could have begun; `cpu` a share of run time, `executors` the tasks and run seconds of each, `gc` a
    share of run time, `spill` in bytes, `failed` the attempts that failed, their seconds and the exception. One that
    `writes` to a sink leaves no shuffle to the next."""
    records, seconds = sorted(records), sorted(seconds)
    tasks, rows, run = len(records), sum(records), sum(seconds)
    shares = executors or {"driver": (tasks, run)}
    return StageSummary(
        stage_id=0, name=name, tasks=tasks, failed_tasks=failed[0], failed_seconds=failed[1], failure=failed[2],
        submitted=ready, started=began, ended=began + (seconds[-1] if wall is None else wall), run_seconds=run,
        cpu_seconds=run * cpu, gc_seconds=run * gc, seconds_median=seconds[len(seconds) // 2], seconds_max=seconds[-1],
        records=int(rows), records_median=records[tasks // 2], records_max=records[-1], reads_shuffle=shuffle,
        input_bytes=0, shuffle_read_bytes=0, shuffle_write_bytes=0 if writes else 1000, spill_bytes=spill,
        executors={each: ExecutorShare(ran, took) for each, (ran, took) in shares.items()},
        slowest_wrote=int(records[-1]) if writes else None,
    )  # fmt: skip


def placed(stages: Stages, begun: float) -> tuple[StageSummary, ...]:
    """The stages of an add_batch that has begun at this instant."""
    return tuple(
        replace(
            each,
            stage_id=number,
            submitted=None if each.submitted is None else begun + each.submitted,
            started=begun + (each.started or 0.0),
            ended=begun + (each.ended or 0.0),
            shuffle_write_bytes=each.shuffle_write_bytes if number < len(stages) - 1 else 0,
        )
        for number, each in enumerate(stages)
    )


def late(history: MakeView, ran: Stages | None, seconds: float = 5.0, **more: Any) -> QueryView:
    """Eight batches of so many seconds, in an interval of two and on two cores, of which each ran these stages."""
    told = {"seconds": [seconds] * 8, "stages": ran, "phases": {"add_batch": seconds - 0.2}, "cores": 2}
    return history(**told | more)


def with_executors(view: QueryView, *samples: tuple[float, Mapping[str, int]]) -> QueryView:
    """The view with these samples of its executors: how long before now, and the cores of each."""
    hosts = tuple(_host(view.now - ago, cores, 0.0) for ago, cores in samples)
    return QueryView(view.history, view.now, hosts, view.others)


def told_by(finding: Finding) -> dict[str, float]:
    """The numbers of a finding by their names."""
    return {each.name: each.value for each in finding.evidence}


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

    Sequences have one entry a batch; `phases`, `stages`, `operators` and `observed` may also be those of every batch.
    `seconds` is the batch duration, a second each where only the `operators` of each batch are told; `backlog` what is
    left (one number, or one a partition), `read` the rows of each partition. `warm` quiet batches come before, so that
    a case begins with a query that has settled; `warm_stages` are the stages of each of these. `python` is the time in
    Python workers of every batch with stages, `gc` what each executor collected in the last 20 s, `source` how Spark
    describes the source.
    """

    def make(
        seconds: Sequence[float] | None = None,
        rows: Sequence[int] | int = 1000,
        backlog: Sequence[int | Sequence[int]] | None = None,
        read: Sequence[Sequence[int]] | None = None,
        interval: float | None = 2.0,
        phases: Sequence[Mapping[str, float]] | Mapping[str, float] | None = None,
        stages: Sequence[Stages | None] | Stages | None = None,
        warm_stages: Stages | None = None,
        python: float | None = None,
        operators: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
        observed: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
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
        if seconds is None:
            seconds = [1.0] * len(operators or ())
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
            told = None if quiet else _of_batch(operators, index)
            past.add(batch(
                number, started=at, duration=took, rows=sum(reads), sources=(read_now,), sink="Parquet",
                phases={"add_batch": took * 0.8} if quiet or phases is None else _of_batch(phases, index),
                operators=() if told is None else (_operator(told),), output_rows=None,
                watermark=None if quiet or watermark is None else watermark[index],
                event_time_max=None if quiet or event_time_max is None else event_time_max[index],
                observed={} if quiet or observed is None else {"ledgerops": _of_batch(observed, index)},
            ))  # fmt: skip
            ran = warm_stages if quiet else _of_batch(stages, index)
            if ran is not None:
                past.tasks.append(TaskSummary("run-1", number, placed(ran, at + 0.1), python))
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


def _of_batch(told: Any, index: int) -> Any:
    """What is told of a batch: the same of all, or an entry for each."""
    same = not isinstance(told, Sequence) or not told or isinstance(told[0], StageSummary)
    return told if same else told[index]


def _operator(told: Mapping[str, Any]) -> StateOperator:
    nothing = {"rows": 0, "updated": 0, "update_seconds": 0.0, "commit_seconds": 0.0, "memory_bytes": 0}
    return operator(**(nothing | dict(told)))


def _host(at: float, cores: int | Mapping[str, int], gc: float) -> Host:
    each = {"driver": cores} if isinstance(cores, int) else cores
    executors = tuple(Executor(name, True, count, 0, 0, 0, 0.0, gc, 0, 2**30) for name, count in each.items())
    return Host(at, sum(each.values()), None, 2**33, 2**32, None, None, (), executors)
