"""Which files are a Spark event log, and in which order they are read.

A place may be a recording as well: what tells them apart needs nothing of what reads an event log.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from ledgerops.common.bounded_lines import ZSTD_MAGIC, read_head
from ledgerops.errors import UserError

SPARKS = "for the next run set spark.eventLog.compression.codec to zstd"
UNPACK = "unpack it, and give the files in it"
OTHER_CODECS = {"lz4": SPARKS, "lzf": SPARKS, "snappy": SPARKS, "gz": UNPACK, "zip": UNPACK}  # -> what to do
ROLLING, COMPACT = "eventlog_v2_", ".compact"
PART = re.compile(r"events_(\d+)_.+")


def is_event_log(path: Path) -> bool:
    """Whether the path is an event log, or a folder that holds some."""
    if path.is_dir():
        return bool(_parts(path)) or bool(_logs(path)) or path.name.startswith(ROLLING)
    return _codec(path) in OTHER_CODECS or read_head(path, 64).startswith((ZSTD_MAGIC, b'{"Event":'))


def _codec(path: Path) -> str:
    """What follows the last dot of a log's name: its codec, where it has one."""
    return path.name.removesuffix(".inprogress").rpartition(".")[2]


def check_codec(path: Path) -> None:
    """Raises UserError for a file that is compressed in another way than zstd."""
    codec = _codec(path)
    if codec in OTHER_CODECS and not read_head(path, len(ZSTD_MAGIC)).startswith(ZSTD_MAGIC):
        raise UserError(f"cannot read {path}: compressed with {codec}; {OTHER_CODECS[codec]}")


def log_files(path: Path) -> list[Path]:
    """The files of a log in order. Raises UserError for a folder that holds several logs."""
    if not path.is_dir():
        return [path]
    parts = _parts(path)
    if parts:
        return parts
    logs = _logs(path)
    if not logs:
        raise UserError(f"no event log in {path}: Spark shows a part only once it is closed, in an object store")
    if len(logs) > 1:
        raise UserError(f"{path} holds {len(logs)} event logs; give one of them, the newest is {logs[-1]}")
    return log_files(logs[0])


def is_compacted(parts: Sequence[Path]) -> bool:
    """Whether the first file of a log stands for others, of which it lacks what had ended: jobs, stages, executors."""
    return parts[0].name.endswith(COMPACT)


def _parts(folder: Path) -> list[Path]:
    """The files of a rolling log in order; a compacted one stands for all before it."""
    found = sorted(
        (int(m[1]), each.name.endswith(COMPACT), each)
        for each in folder.iterdir()
        if (m := PART.match(each.name)) and not each.name.endswith(f"{COMPACT}.inprogress")  # its originals are there
    )
    compact = max((index for index, (_, is_compact, _) in enumerate(found) if is_compact), default=0)
    return [each for _, _, each in found[compact:]]


def _logs(folder: Path) -> list[Path]:
    """Event logs in a folder, oldest first."""
    found = [
        each
        for each in folder.iterdir()
        if (each.is_dir() and each.name.startswith(ROLLING)) or (each.is_file() and _looks_like_log(each))
    ]
    return sorted(found, key=lambda each: each.stat().st_mtime)


def _looks_like_log(path: Path) -> bool:
    return not path.name.endswith((".jsonl", ".jsonl.zst")) and not path.name.startswith(".") and is_event_log(path)
