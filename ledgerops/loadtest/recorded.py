"""What a recording holds of each query: its batches, how it failed, its trigger interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ledgerops import failures, recording
from ledgerops.progress import BadRecord, parse_progress
from ledgerops.records import Progress


def batches_of(place: Path) -> Mapping[str, Sequence[Progress]]:
    """The batches of each query; torn and foreign lines are passed over. Raises UserError for no recording."""
    found: dict[str, list[Progress]] = {}
    for seen in recording.read(place):
        if seen.kind == "progress":
            try:
                batch = parse_progress(seen.data)
            except BadRecord:
                continue
            found.setdefault(batch.query, []).append(batch)
    return found


def broken(place: Path) -> Mapping[str, str]:
    """What each query that failed says, in one line."""
    found = {}
    for seen in recording.read(place):
        error = seen.data.get("exception") if seen.kind == "terminated" else None
        if seen.query is not None and isinstance(error, str):
            found[seen.query] = failures.cause(error)
    return found


def intervals(place: Path) -> Mapping[str, float]:
    """The trigger interval of each query whose plan tells it, in seconds."""
    found = {}
    for seen in recording.read(place):
        interval = seen.data.get("trigger_interval") if seen.kind == "plan" else None
        if seen.query is not None and isinstance(interval, int | float):
            found[seen.query] = float(interval)
    return found
