"""What a file source took, from its log in the checkpoint: `sources/S/N` is entry N of source S, in which each line but
the first is the JSON of a file. Every tenth entry, `N.compact`, repeats all before it; its own files come last.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ledgerops.checkpoint.batch_log import COMPACT
from ledgerops.input_files import local_path, open_regular

MAX_ENTRY_BYTES = 1024 * 1024  # of an entry that are read: some 7,000 files
MAX_MILLISECONDS = 10**14  # the year 5138
WILDCARD = re.compile(r"[*?\[{]")


class TakenFiles(NamedTuple):
    """The files of one entry. Instants are times of modification in epoch seconds, `path` is the newest file's."""

    files: int
    oldest: float
    newest: float
    path: str


def read_named_entry(checkpoint: Path, folder: str, entry: int) -> TakenFiles | None:
    """The same of the named source that reads files of `folder` (a URI, which may have wildcards); None for none.
    Spark's progress does not say how a source is called."""
    plain = WILDCARD.split(folder, maxsplit=1)[0]
    prefix, found = local_path(plain), []
    for log in sorted((checkpoint / "sources").iterdir()):
        taken = read_entry(checkpoint, log.name, entry)
        read = local_path(taken.path) if taken else None
        if prefix is None or read is None:
            continue
        if read.is_relative_to(prefix) if plain == folder else str(read).startswith(str(prefix)):
            found.append(taken)
    return found[0] if len(found) == 1 else None  # of several it is not known whose they are


def read_entry(checkpoint: Path, source: int | str, entry: int) -> TakenFiles | None:
    """The files of one entry of the log of a source, by its number in the query or its name.

    None where the log has no such entry, it is damaged, or it is longer than MAX_ENTRY_BYTES. Raises OSError when the
    file is there and cannot be read.
    """
    plain = checkpoint / "sources" / str(source) / str(entry)
    for file in (plain, plain.with_name(plain.name + COMPACT)):
        try:
            with open_regular(file) as log:
                cut = max(0, os.fstat(log.fileno()).st_size - MAX_ENTRY_BYTES)
                log.seek(cut)
                lines = log.read(MAX_ENTRY_BYTES).split(b"\n")
        except FileNotFoundError:
            continue
        taken = list(_entry_files(lines, entry))
        if not taken or (cut and len(taken) >= len(lines) - 1):
            return None
        newest = max(taken)
        return TakenFiles(len(taken), min(taken)[0], *newest)
    return None


def _entry_files(lines: list[bytes], entry: int) -> Iterator[tuple[float, str]]:
    """(modified, path) of the files of an entry, the last one first: those before it belong to earlier entries."""
    for line in reversed(lines):
        if not line:
            continue
        try:
            file: Any = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(file, Mapping) or file.get("batchId") != entry:
            return
        at, path = file.get("timestamp"), file.get("path")
        if isinstance(at, int) and 0 < at < MAX_MILLISECONDS and isinstance(path, str):
            yield at / 1000, path
