"""The batches of a checkpoint, from its files alone: no other module knows how these are written.

| file | written | holds |
|---|---|---|
| `metadata` | once | the id of the query |
| `sources/S/0` | when source S is first read | where the source began; S is a number, or the name of a named source |
| `offsets/N` | before batch N (planned) | a version, the settings, and a line with the end offset of each source |
| `commits/N` | after batch N (committed) | a version and the next watermark |

Since version 2 of `offsets` (Spark 4.2) the number or name of the source and a colon stand before each offset.

Read without Spark and without writing. A query may go on meanwhile; a file that it has just removed counts as empty.
https://spark.apache.org/docs/latest/structured-streaming-programming-guide.html says what the files are for.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ledgerops.errors import UserError
from ledgerops.input_files import read_text
from ledgerops.model.sources import offsets_of
from ledgerops.signals.partitions import lowest_offsets

PARTITIONS = "spark.sql.shuffle.partitions"
COMPACT = ".compact"  # suffix of a log's file that repeats all batches before it
NO_BATCH = -1
VERSION_2 = "v2"  # of a file of `offsets`: sources have names
Place = tuple[str, str]  # topic, partition


@dataclass(frozen=True)
class PlannedBatch:
    """One file of `offsets`. A text that is damaged has no settings and no sources."""

    settings: Mapping[str, Any]
    sources: tuple[str, ...]  # the end offset of each source, as Spark's JSON

    @property
    def conf(self) -> Mapping[str, str] | None:
        """The Spark settings that the checkpoint holds on to; None where the file has none."""
        found = self.settings.get("conf")
        return {str(name): str(value) for name, value in found.items()} if isinstance(found, Mapping) else None

    @property
    def shuffle_partitions(self) -> int | None:
        """The number that every further batch will use, whatever the session says; None where it is unknown."""
        value = (self.conf or {}).get(PARTITIONS, "")
        return int(value) if value.isdecimal() else None

    @property
    def watermark_seconds(self) -> float | None:
        """The watermark in epoch seconds; None before there is one. Raises KeyError when the file does not say."""
        milliseconds = self.settings["batchWatermarkMs"]
        return milliseconds / 1000 if milliseconds else None

    @cached_property
    def ends(self) -> Mapping[Place, int]:
        """Where the batch ends, of the sources that have topics; of two that read one topic, the slower."""
        return _lowest(self.sources)


class Batch(NamedTuple):
    """A planned batch in time: epoch seconds; `committed_at` is None while it runs or where it failed."""

    number: int
    planned_at: float
    committed_at: float | None


@dataclass(frozen=True)
class BatchLog:
    """The batches of the checkpoint in folder `path`, which need not exist. Each property reads it anew."""

    path: Path

    @property
    def query_id(self) -> str | None:
        """The same after a restart, another one with a new checkpoint; None where the checkpoint does not say."""
        try:
            return parse_query_id(_text(self.path / "metadata"))
        except (ValueError, RecursionError):
            return None

    @property
    def planned(self) -> frozenset[int]:
        """The numbers of the batches that were planned."""
        return frozenset(metadata_log(self.path / "offsets"))

    @property
    def committed(self) -> frozenset[int]:
        """The numbers of the batches that were committed."""
        return frozenset(metadata_log(self.path / "commits"))

    @property
    def newest_planned(self) -> int | None:
        """The number of the newest planned batch; None before the first."""
        return max(self.planned, default=None)

    @property
    def newest_committed(self) -> int | None:
        """The number of the newest committed batch; None before the first."""
        return max(self.committed, default=None)

    def batch(self, number: int) -> PlannedBatch:
        """What was planned for a batch."""
        return parse_batch(_text(self.path / "offsets" / str(number)))

    @property
    def newest(self) -> PlannedBatch:
        """The newest planned batch; one without settings and sources before the first."""
        number = self.newest_planned
        return PlannedBatch({}, ()) if number is None else self.batch(number)

    @property
    def progress(self) -> tuple[int, Mapping[Place, int]]:
        """The newest committed batch and where it ends; before the first, NO_BATCH and where the sources began."""
        newest = self.newest_committed
        if newest is not None:
            return newest, self.batch(newest).ends
        return NO_BATCH, _lowest(_text(file).partition("\n")[2] for file in self.path.glob("sources/*/0"))

    def times(self) -> list[Batch]:
        """All planned batches by the times of their files, oldest first."""
        commits = {number: _modified(file) for number, file in metadata_log(self.path / "commits").items()}
        return [
            Batch(number, at, commits.get(number))
            for number, file in sorted(metadata_log(self.path / "offsets").items())
            if (at := _modified(file)) is not None
        ]


def is_checkpoint(path: Path) -> bool:
    """Whether a folder is a checkpoint of a query that has started."""
    return (path / "offsets").is_dir() and (path / "metadata").is_file()


def metadata_log(folder: Path) -> dict[int, Path]:
    """The file of each batch in one of Spark's metadata logs (`offsets`, `commits`, a file sink's `_spark_metadata`).
    Empty without such a folder. Checksums and unfinished files, all with a leading dot, are left out."""
    try:
        files = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {int(name): file for file in files if (name := file.name.removesuffix(COMPACT)).isdecimal()}


def parse_batch(text: str) -> PlannedBatch:
    """A file of `offsets`."""
    lines = text.splitlines()
    try:
        settings = json.loads(lines[1])
    except (IndexError, ValueError, RecursionError):
        settings = None
    sources = lines[2:] if lines[:1] != [VERSION_2] else [line.partition(":")[2] for line in lines[2:]]
    return PlannedBatch(settings if isinstance(settings, Mapping) else {}, tuple(sources))


def parse_query_id(text: str) -> str:
    """The query id in the file `metadata`. Raises ValueError when it has none."""
    found = json.loads(text)
    if not isinstance(found, Mapping) or not isinstance(found.get("id"), str):
        raise ValueError("no query id")
    return str(found["id"])


def parse_source_offset(text: object) -> Mapping[Place, int]:
    """Offsets by topic and partition, from Spark's JSON of a source's offset; empty where it holds no plain numbers."""
    return offsets_of(text)


def _lowest(lines: Iterable[str]) -> Mapping[Place, int]:
    """The offsets of the sources that have topics; of several that read one topic, those of the slowest."""
    offsets = lowest_offsets(parse_source_offset(line) for line in lines)
    return {partition: offset for partition, offset in offsets.items() if partition[0]}


def _text(file: Path) -> str:
    try:
        return read_text(file)
    except (OSError, UnicodeDecodeError, UserError):
        return ""


def _modified(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return None
