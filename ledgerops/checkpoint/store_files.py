"""The files of a state store: which versions of a partition's state they hold, and how many bytes.

Batch N leaves the state in version N + 1. A version can be had from a whole copy of it (snapshot), or from an earlier
one (or from nothing, version 0) and every change after it.
"""

import json
import re
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# a checkpoint of format 2 puts an id behind the version
VERSIONED = re.compile(r"(\d+)(?:_[\w-]+)?\.(changelog|zip|delta|snapshot)")
WHOLE, CHANGES = ("zip", "snapshot"), ("changelog", "delta")


@dataclass(frozen=True)
class StoreFiles:
    """One store of one partition of an operator."""

    folder: Path
    snapshots: frozenset[int]  # versions of which there is a whole copy
    changes: frozenset[int]  # versions of which there are the changes since the one before
    snapshot_bytes: int  # with RocksDB's SST files
    change_bytes: int

    @cached_property
    def readable(self) -> frozenset[int]:
        """The versions that can be read, 0 (before the first batch) aside."""
        found: set[int] = set()
        for version in sorted(self.snapshots | self.changes):
            if version in self.snapshots or (version in self.changes and (version == 1 or version - 1 in found)):
                found.add(version)
        return frozenset(found)

    def snapshot_for(self, version: int) -> int | None:
        """The newest snapshot not after `version`."""
        return max((snapshot for snapshot in self.snapshots if snapshot <= version), default=None)

    def snapshot_rows(self, version: int) -> int | None:
        """The rows (keys, as Spark counts them) of a RocksDB snapshot; None where the snapshot does not say."""
        if version not in self.snapshots:  # else a folder would be listed for each of its versions
            return None
        for file in self.folder.glob(f"{version}*.zip"):
            if (named := VERSIONED.fullmatch(file.name)) is None or int(named[1]) != version:
                continue
            try:
                with zipfile.ZipFile(file) as snapshot:
                    rows = json.loads(snapshot.read("metadata").split(b"\n", 1)[1])["numKeys"]
            except (
                OSError, ValueError, LookupError, TypeError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile
            ):  # fmt: skip
                return None
            return rows if isinstance(rows, int) and rows >= 0 else None
        return None


def scan(folder: Path) -> StoreFiles:
    """What is in a store's folder now. Files that a running query removes meanwhile are passed over."""
    versions: dict[str, set[int]] = {kind: set() for kind in (*WHOLE, *CHANGES)}
    snapshot_bytes = change_bytes = 0
    for file in (*_entries(folder), *_entries(folder / "SSTs")):
        named = VERSIONED.fullmatch(file.name)
        try:
            # hidden files are Hadoop's checksums and files not finished yet
            size = 0 if file.name.startswith(".") or not file.is_file() else file.stat().st_size
        except OSError:
            continue
        if named:
            versions[named[2]].add(int(named[1]))
        elif file.parent.name != "SSTs" or not size:
            continue
        if named and named[2] in CHANGES:
            change_bytes += size
        else:
            snapshot_bytes += size
    return StoreFiles(
        folder=folder,
        snapshots=frozenset(set().union(*(versions[kind] for kind in WHOLE))),
        changes=frozenset(set().union(*(versions[kind] for kind in CHANGES))),
        snapshot_bytes=snapshot_bytes,
        change_bytes=change_bytes,
    )


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
