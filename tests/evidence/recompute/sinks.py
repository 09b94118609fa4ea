"""What a batch does outside tasks, in the stage that writes, and what uneven tasks cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tests.evidence.recompute.shared import Formula, plain, python, slots
from tests.evidence.tape import Batch, Json, Tape, middle

HOT = 0.3  # share of the rows, and
ROWS = 100  # rows, from which a key is hot


def _outside(tape: Tape, batches: Sequence[Batch]) -> float | None:
    return middle(max(0.0, batch.phase("addBatch") - tape.wall(batch)) for batch in batches)


def _outside_share(tape: Tape, finding: Json) -> float | None:
    outside = _outside(tape, tape.late_with_tasks)
    return outside / median(b.seconds for b in tape.late_with_tasks) if outside is not None else None


def _writing(tape: Tape) -> tuple[float, float] | None:
    """(wall seconds, share at work) of the last stage, in the batch in which that share is the median."""
    found = []
    for batch in tape.late_with_tasks:
        stage = tape.stages(batch)[-1]
        wall = stage["ended"] - stage["started"]
        if stage["run_seconds"] > 0 and stage["run_seconds"] / slots(tape, stage["tasks"]) >= 0.6 * wall:
            busy = stage["cpu_seconds"] + stage["gc_seconds"] + python(tape, batch)
            found.append((min(1.0, busy / stage["run_seconds"]), wall))
    found.sort()
    return (found[len(found) // 2][1], found[len(found) // 2][0]) if found else None


def _uneven(tape: Tape) -> list[tuple[float, Json, Batch]]:
    """By batch the stage behind a shuffle with the most uneven records: (factor, stage, batch)."""
    places: dict[int, list[tuple[float, Json, Batch]]] = {}
    for batch in tape.late_with_tasks:
        several = [each for each in tape.stages(batch) if each["tasks"] > 1 and each["reads_shuffle"]]
        for place, stage in enumerate(several):
            if stage["records"] >= 200:
                factor = slots(tape, stage["tasks"]) * min(1.0, stage["records_max"] / stage["records"])
                places.setdefault(place, []).append((factor, stage, batch))
    ranked = [sorted(found, key=lambda each: each[0]) for found in places.values() if len(found) >= 2]
    return max(ranked, key=lambda found: found[len(found) // 2][0], default=[])


def _middle_stage(tape: Tape) -> tuple[float, Json] | None:
    found = _uneven(tape)
    return found[len(found) // 2][:2] if found else None


def _largest_records(tape: Tape) -> float | None:
    found = _middle_stage(tape)
    return float(found[1]["records_max"]) if found else None


def _largest_share(tape: Tape) -> float | None:
    found = _middle_stage(tape)
    return float(min(1.0, found[1]["records_max"] / found[1]["records"])) if found else None


def _uneven_lost(tape: Tape) -> float | None:
    def share(stage: Json, batch: Batch) -> float:
        even = stage["run_seconds"] / slots(tape, stage["tasks"])
        return float(max(0.0, stage["ended"] - stage["started"] - even) / batch.seconds)

    told = middle(share(stage, batch) for _, stage, batch in _uneven(tape))
    return told * median(batch.seconds for batch in tape.late_with_tasks) if told is not None else None


def _hottest(batch: Batch) -> tuple[float, int] | None:
    """(share, count) of the most frequent key."""
    found: list[tuple[float, int]] = []
    for name, row in batch.observed.items():
        keys: Any = row.get("hot_keys")
        if name.startswith("ledgerops") and row.get("rows") and keys:
            found.append((keys[0]["count"] / row["rows"], keys[0]["count"]))
    return max(found, default=None)


def _hot(tape: Tape) -> tuple[float, int] | None:
    told = (_hottest(batch) for batch in reversed(tape.run[-5:]))
    return next((each for each in told if each is not None and each[0] >= HOT and each[1] >= ROWS), None)


def _hot_factor(tape: Tape) -> float | None:
    hot = _hot(tape)
    found = _middle_stage(tape)
    partitions = found[1]["tasks"] if found else int(tape.plan.get("shuffle_partitions") or 1)
    width = slots(tape, partitions)
    return width * (hot[0] + (1 - hot[0]) / width) if hot is not None else None


FORMULAS: Mapping[str, Formula] = {
    "add_batch_seconds_outside_tasks": plain(lambda tape: _outside(tape, tape.late_with_tasks)),
    "outside_tasks_share": _outside_share,
    "usual_seconds_outside_tasks": plain(lambda tape: _outside(tape, tape.with_tasks(batches=tape.usual))),
    "writing_stage_seconds": plain(lambda tape: each[0] if (each := _writing(tape)) else None),
    "writing_stage_cpu_share": plain(lambda tape: each[1] if (each := _writing(tape)) else None),
    "add_batch_seconds": plain(lambda tape: middle(batch.phase("addBatch") for batch in tape.steady[-3:])),
    "usual_add_batch_seconds": plain(lambda tape: middle(batch.phase("addBatch") for batch in tape.usual)),
    "ledgerops_hot_key_share": plain(lambda tape: each[0] if (each := _hot(tape)) else None),
    "hot_key_rows": plain(lambda tape: float(each[1]) if (each := _hot(tape)) else None),
    "slower_by_hot_key": plain(_hot_factor),
    "largest_task_records": plain(_largest_records),
    "largest_task_share": plain(_largest_share),
    "stage_slower_than_even": plain(lambda tape: each[0] if (each := _middle_stage(tape)) else None),
    "lost_by_uneven_tasks_seconds": plain(_uneven_lost),
}
