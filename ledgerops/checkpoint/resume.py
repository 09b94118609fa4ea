"""What a query's checkpoint says before the query starts: how far it has read, and the settings it holds on to.

Read from its files, without Spark: https://spark.apache.org/docs/latest/structured-streaming-programming-guide.html
tells what they are for. `offsets/N` is written before batch N and holds a version, the settings, and a line for each
source; `commits/N` after it; `sources/N/0` is where a source began.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ledgerops.model.spark_progress import parse_offsets

PARTITIONS = "spark.sql.shuffle.partitions"
Place = tuple[str, str]  # topic, partition


def newest_batch(log: Path) -> int | None:
    """The newest batch in a log of a checkpoint (`offsets`, `commits`), a file each; None without one."""
    if not log.is_dir():
        return None
    return max((int(file.name) for file in log.iterdir() if file.name.isdigit()), default=None)


def planned(checkpoint: Path) -> bool:
    """Whether it holds a batch: one that does not knows of no row, only where its sources would have begun."""
    return newest_batch(checkpoint / "offsets") is not None


def forget_unused(checkpoint: Path) -> None:
    """Removes a checkpoint that planned no batch, so that a new start decides where its sources begin."""
    if checkpoint.is_dir() and not planned(checkpoint):
        shutil.rmtree(checkpoint)


def shuffle_partitions(checkpoint: Path) -> int | None:
    """The number that every further batch will use, whatever the session says; None before the first batch."""
    newest = newest_batch(checkpoint / "offsets")
    conf = _plan(checkpoint, newest)[0].get("conf") if newest is not None else None
    value = conf.get(PARTITIONS) if isinstance(conf, Mapping) else None
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def planned_offsets(checkpoint: Path) -> dict[Place, int]:
    """Where the newest batch that was planned ends, of the sources that have topics; empty before the first."""
    newest = newest_batch(checkpoint / "offsets")
    return {} if newest is None else _plan(checkpoint, newest)[1]


def committed(checkpoint: Path) -> tuple[int, dict[Place, int]]:
    """The newest committed batch, -1 before the first, and where it (or else each source's beginning) ends."""
    newest = newest_batch(checkpoint / "commits")
    if newest is not None:
        return newest, _plan(checkpoint, newest)[1]
    begun: dict[Place, int] = {}
    for file in checkpoint.glob("sources/*/0"):
        _add(begun, _text(file).partition("\n")[2])
    return -1, begun


def offsets_of(text: object) -> Mapping[Place, int]:
    """Offsets by topic and partition, from Spark's JSON of a source's offset; empty where it holds no plain numbers."""
    return parse_offsets(text, "")


def _plan(checkpoint: Path, batch: int) -> tuple[Mapping[str, Any], dict[Place, int]]:
    lines = _text(checkpoint / "offsets" / str(batch)).splitlines()
    try:
        settings = json.loads(lines[1])
    except (IndexError, ValueError):
        settings = {}
    offsets: dict[Place, int] = {}
    for line in lines[2:]:
        _add(offsets, line)
    return settings if isinstance(settings, Mapping) else {}, offsets


def _add(offsets: dict[Place, int], line: str) -> None:
    """Of two sources that read one topic, the one that is behind counts."""
    for place, offset in offsets_of(line).items():
        if place[0]:
            offsets[place] = min(offset, offsets.get(place, offset))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
