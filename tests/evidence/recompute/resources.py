"""Garbage collection and spills."""

from __future__ import annotations

from collections.abc import Mapping

from tests.evidence.recompute.shared import Formula, heap, newest_of, total_of
from tests.evidence.tape import Batch, Json, Tape, middle, running_tasks


def _newest_with_tasks(tape: Tape) -> list[Batch]:
    return tape.with_tasks()[:3]


def _gc_stages(tape: Tape, finding: Json) -> float | None:
    stages = [stage for batch in _newest_with_tasks(tape) for stage in tape.stages(batch)]
    run = total_of(stages, "run_seconds")
    return total_of(stages, "gc_seconds") / run if run else None


def _gc_batch(tape: Tape, finding: Json) -> float | None:
    batches = _newest_with_tasks(tape)
    stages = [stage for batch in batches for stage in tape.stages(batch)]
    if not stages:
        return None
    widest = max(stage["tasks"] for stage in stages)
    return float(total_of(stages, "gc_seconds") / max(1, min(widest, tape.cores or widest)) / len(batches))


def _gc_executors(tape: Tape, finding: Json) -> float | None:
    looks = [host for host in tape.hosts if running_tasks(host) and host["at"] >= tape.hosts[-1]["at"] - 30]
    if len(looks) < 2:
        return None
    gc, run = (
        total_of(running_tasks(looks[-1]), key) - total_of(running_tasks(looks[0]), key)
        for key in ("gc_seconds", "run_seconds")
    )
    return gc / run if run > 0 else None


def _state_of_heap(tape: Tape, finding: Json) -> float | None:
    return float(sum(each["memoryUsedBytes"] for each in newest_of(tape).operators) / heap(tape))


def _spilled(tape: Tape, finding: Json) -> float | None:
    return middle(total_of(tape.stages(batch), "spill_bytes") for batch in _newest_with_tasks(tape))


def _spilling_share(tape: Tape, finding: Json) -> float | None:
    return middle(
        sum(stage["ended"] - stage["started"] for stage in tape.stages(batch) if stage["spill_bytes"]) / batch.seconds
        for batch in _newest_with_tasks(tape)
    )


FORMULAS: Mapping[str, Formula] = {
    "gc_share_of_stages": _gc_stages,
    "gc_seconds_per_batch": _gc_batch,
    "gc_share_of_executors": _gc_executors,
    "state_share_of_heap": _state_of_heap,
    "spilled_bytes": _spilled,
    "spilling_stages_share": _spilling_share,
}
