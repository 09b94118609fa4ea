"""A registry with one query of each kind that a display must show."""

import math
from typing import Any

from ledgerops.model.finding import Component, Evidence, Finding, Forecast, Remedy, Status, Verdict
from ledgerops.model.records import Plan, Progress, StateOperator
from ledgerops.runtime.registry import QueryRegistry, QueryState
from tests.build import batch, operator, source

NOW = 1_800_000_300.0
HOSTILE = "<img src=x onerror=alert('x')>"  # query names come from other people's code

KEY_SKEW = Finding(
    summary="one task read 48,120 of 52,400 rows: 14.9 times the median, all of customer C00000042",
    component=Component("stage", "stage 41", "customer_id"),
    evidence=(
        Evidence("ledgerops_skew_ratio", 14.9, "ratio", "<= 3", NOW),
        Evidence("ledgerops_batch_duration_seconds", 6.4, "seconds", "<= 2", NOW),
    ),
    remedies=(Remedy("aggregate in two steps, with a salt on the key", "the hot key then spreads over all tasks"),),
    confidence=0.93,
    rule="key-skew",
    severity="critical",
    since=NOW - 80,
    explains=("falling-behind",),
)


def no_judge() -> Any:
    return lambda view: Verdict(view.query, view.now, "healthy", 100)


def add_query(
    registry: QueryRegistry,
    query: str,
    status: Status,
    health: int,
    findings: tuple[Finding, ...] = (),
    batches: tuple[Progress, ...] | list[Progress] = (),
    interval: float | None = 2.0,
) -> QueryState:
    state = registry.queries[query] = QueryState(query, no_judge())
    state.history.start(NOW - 300, f"id-{query}", "run-1")
    state.history.plan = Plan("run-1", trigger="processing_time", trigger_interval=interval)
    for each in batches:
        state.history.add(each)
        state.totals.add(each)
    drain = Forecast(registry.view(state, NOW).capacity.drain_seconds)
    state.verdict = Verdict(query, NOW, status, health, findings[:1], findings, drain)
    return state


PHASES = {  # shares of a batch's time
    "latest_offset": 0.02, "query_planning": 0.12, "get_batch": 0.01, "wal_commit": 0.08, "add_batch": 0.68,
    "commit_offsets": 0.07,
}  # fmt: skip


def batches(
    query: str,
    count: int = 140,
    rows: int = 2000,
    seconds: float = 0.5,
    left: float = 0.0,  # offsets by which the backlog grows a batch
    state: tuple[StateOperator, ...] = (),
    late: float | None = None,  # watermark lag in seconds
    gap: float = 2.0,
) -> list[Progress]:
    """`count` batches up to now, of slightly changing size; five partitions, the first with twice the rows."""
    made, read = [], 0
    for number in range(count):
        wave = 1 + 0.15 * math.sin(number / 7) + 0.05 * math.sin(number * 2.3)
        took, got = seconds * wave, round(rows * wave)
        started = NOW - (count - number) * gap
        shares = {("transactions", str(i)): share for i, share in enumerate([2, 1, 1, 1, 1])}
        start = {partition: read * share // 6 for partition, share in shares.items()}
        end = {partition: (read + got) * share // 6 for partition, share in shares.items()}
        latest = {partition: value + round(left * number / 5) for partition, value in end.items()}
        grown = [
            operator(name=each.name, rows=each.rows + 90 * number, memory_bytes=each.memory_bytes + number * 9000)
            for each in state
        ]
        made.append(
            batch(
                number,
                query=query,
                query_id=f"id-{query}",
                started=started,
                duration=took,
                rows=got,
                sources=(source(got, start, end, latest),),
                phases={phase: share * took for phase, share in PHASES.items()},
                operators=tuple(grown),
                watermark=started - late if late is not None else None,
            )
        )
        read += got
    return made


def demo_fleet() -> QueryRegistry:
    registry = QueryRegistry(no_judge)

    def add(query: str, status: Status, health: int, *findings: Finding, **told: Any) -> QueryState:
        return add_query(registry, query, status, health, findings, batches(query, **told))

    add("large_credits", "healthy", 100, seconds=0.4)
    dedupe = operator(name="dedupe", rows=40000)
    add("dedup_transactions", "healthy", 100, state=(dedupe,), late=12.0, seconds=0.8)
    skewed = {"count": 46, "rows": 52400, "seconds": 6.4, "left": 2600, "late": 30.0, "gap": 6.5}
    add("daily_counts", "falling_behind", 38, KEY_SKEW, state=(operator(),), **skewed)
    sessions = operator(rows=1_204_000)
    add("customer_sessions", "pressured", 74, rows=4000, seconds=1.85, state=(sessions,), late=95.0)
    add_query(registry, "debit_credit_pairs", "starting", 100)
    failed = add("enriched_transactions", "failed", 0, count=60)
    failed.history.end(NOW - 100, "run-1", "org.apache.spark.SparkRuntimeException: bad row", "USER_RAISED_EXCEPTION")
    idle = add(HOSTILE, "idle", 100, count=40)
    idle.history.idle(NOW - 10)
    return registry
