"""What a cause of time tells beside its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from statistics import median
from typing import Any

from tests.evidence.recompute.profile import named
from tests.evidence.recompute.shared import Formula, heap, median_of, newest_of, plain, total_of
from tests.evidence.tape import Batch, Json, Place, Tape

HOT = 0.3  # share of the rows, and
ROWS = 100  # rows, from which a key is hot


def _answers(tape: Tape) -> list[float]:
    return [data["seconds"] for _, data in tape.asked if data.get("seconds") is not None]


def _hottest(batch: Batch) -> tuple[float, int] | None:
    """(share, count) of the most frequent key."""
    found: list[tuple[float, int]] = []
    for name, row in batch.observed.items():
        keys: Any = row.get("hot_keys")
        if name.startswith("ledgerops") and row.get("rows") and keys:
            found.append((keys[0]["count"] / row["rows"], keys[0]["count"]))
    return max(found, default=None)


def _hot_share(tape: Tape, finding: Json) -> float | None:
    told = (_hottest(batch) for batch in reversed(tape.run[-5:]))
    return next((each[0] for each in told if each is not None and each[0] >= HOT and each[1] >= ROWS), None)


def _read(tape: Tape, finding: Json) -> Counter[Place]:
    """Offsets by partition of the topic that a finding names."""
    found = Counter[Place]()
    for batch in named(tape, finding):
        for place, end in batch.ended_at_offsets.items():
            if place[0] == finding["component"]["detail"]:
                found[place] += max(0, end - batch.began_at_offsets.get(place, end))
    return found


def _partition_rows(tape: Tape, finding: Json) -> float:
    topic, _, number = finding["component"]["name"].rpartition("-")
    return float(_read(tape, finding)[topic, number])


def _tiny_tasks(tape: Tape, finding: Json) -> float:
    """Of the stages of the newest batch whose tasks are many and have hardly anything to do."""

    def tiny(stage: Json) -> bool:
        a_core, each = stage["tasks"] / tape.cores, stage["records"] / stage["tasks"]
        return (a_core >= 50 and each < 50) or (a_core >= 10 and each < 500 and stage["seconds_median"] <= 0.25)

    return total_of(filter(tiny, tape.stages(named(tape, finding)[-1])), "tasks")


def _state_of_heap(tape: Tape) -> float:
    return total_of(newest_of(tape).operators, "memoryUsedBytes") / heap(tape)


FORMULAS: Mapping[str, Formula] = {
    "broker_answer_seconds": plain(lambda tape: median(_answers(tape)[-3:])),
    "usual_broker_answer_seconds": plain(lambda tape: median(_answers(tape)[:-15])),
    "ledgerops_hot_key_share": _hot_share,
    "partition_rows": _partition_rows,
    "partition_share": lambda tape, finding: _partition_rows(tape, finding) / _read(tape, finding).total(),
    "tasks": _tiny_tasks,
    "spilled_bytes": lambda tape, finding: median_of(
        total_of(tape.stages(batch), "spill_bytes") for batch in named(tape, finding)
    ),
    "state_share_of_heap": plain(_state_of_heap),
}
