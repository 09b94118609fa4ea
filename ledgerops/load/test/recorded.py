"""What a recording holds of each query: its batches, how it failed, its trigger interval."""

from dataclasses import dataclass, field
from pathlib import Path

from ledgerops.ledger.run import failures
from ledgerops.model import recording
from ledgerops.model.records import Progress
from ledgerops.model.spark_progress import BadRecord, parse_progress


@dataclass(frozen=True, slots=True)
class Recorded:
    """By query. One that did not fail has no entry in `failed`, one without a known interval none in `intervals`."""

    batches: dict[str, list[Progress]] = field(default_factory=dict)
    failed: dict[str, list[tuple[float, str]]] = field(default_factory=dict)  # when, and the reason in one line
    intervals: dict[str, float] = field(default_factory=dict)  # seconds


def read_recorded(place: Path) -> Recorded:
    """What a recording holds. Skips damaged and unknown lines. Raises UserError if it is not a recording."""
    found = Recorded()
    for seen in recording.read(place):
        if seen.kind == "progress":
            try:
                batch = parse_progress(seen.data)
            except BadRecord:
                continue
            found.batches.setdefault(batch.query, []).append(batch)
        elif seen.query is None:
            continue
        elif seen.kind == "terminated" and isinstance(error := seen.data.get("exception"), str):
            found.failed.setdefault(seen.query, []).append((seen.at, failures.cause(error)))
        elif seen.kind == "plan" and isinstance(interval := seen.data.get("trigger_interval"), int | float):
            found.intervals[seen.query] = float(interval)
    return found
