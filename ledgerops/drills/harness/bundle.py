"""The bundle of a drill: one folder with the recording, the truth and everything needed to score it again.

recording/         all that the diagnosis reads
drill.json         of a scripted drill: drill, seed, random names by role; case.json: the whole of a drawn one
times.json         origin and the instants of injection, repair and end
failures.jsonl     when queries failed, by the application's own log
outside.json       what the outside does to the application
checkpoints/       checkpoints by role

Of a drawn drill also application/ (its source), eventlog/, live.jsonl (what `/diagnosis` answered each second),
scrapes.jsonl.gz (what Prometheus would have scraped) and machine.jsonl (how much of the machine others used).
"""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from ledgerops.checkpoint.batch_log import BatchLog, parse_source_offset
from ledgerops.errors import UserError, cannot_read

MARKERS = ("drill.json", "case.json")  # files that mark a folder as one of a drill


def empty_folder(folder: Path) -> None:
    """Makes a new folder for a drill, in place of one that holds another. Raises UserError for any other folder."""
    if folder.exists():
        if any(folder.iterdir()) and not any((folder / marker).exists() for marker in MARKERS):
            raise UserError(f"{folder} contains files that do not belong to a drill; choose another folder with --out")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


class Commit(NamedTuple):
    """One micro-batch, read from its checkpoint: when it was planned, and when it was done (None while it runs)."""

    batch: int
    planned: float
    done: float | None
    read: int  # rows of the first source that it and all batches before it have read, of a source that began at 0


@dataclass(frozen=True)
class Bundle:
    """A finished drill in its folder. Instants are seconds since the epoch."""

    folder: Path

    @property
    def recording(self) -> Path:
        """Folder of the recording."""
        return self.folder / "recording"

    @cached_property
    def stored(self) -> dict[str, Any]:
        """`drill` (its name), `seed` (of the random names and data), `names` (by role, the random name of each query),
        `lanes` (how many drills may have run at the same time; 1 where it is absent)."""
        return self._json("drill.json")

    @property
    def names(self) -> dict[str, str]:
        """The random name of each query, by role."""
        return dict(self.stored["names"])

    @cached_property
    def times(self) -> dict[str, float]:
        """`origin`, `injected`, `repaired`, `ended`; and `effect` once it was judged, absent if there was none."""
        return dict(self._json("times.json"))

    def note(self, **times: float | None) -> None:
        """Adds instants to the times."""
        self.times.update({name: at for name, at in times.items() if at is not None})
        (self.folder / "times.json").write_text(json.dumps(self.times, indent=1) + "\n", "utf-8")

    def checkpoint(self, role: str = "main") -> Path:
        """Checkpoint folder of the query with this role."""
        return self.folder / "checkpoints" / role

    def commits(self, role: str = "main") -> Sequence[Commit]:
        """The batches of a query by the times of the files of its checkpoint, oldest first."""
        found = []
        log = BatchLog(self.checkpoint(role))
        for batch in log.times():
            sources = log.batch(batch.number).sources
            ends = parse_source_offset(sources[0]) if sources else {}
            found.append(Commit(*batch, sum(ends.values())))
        return found

    def save(self, folder: Path) -> None:
        """Saves what a replay needs, compressed, without paths of this machine."""
        target = folder / str(self.stored["drill"])
        if target.resolve() == self.folder.resolve():
            return  # already saved
        (target / "recording").mkdir(parents=True, exist_ok=True)
        for old in (target / "recording").glob("*"):
            old.unlink()
        own = str(self.folder.resolve())
        replaced = [(own, "/drill"), (sys.prefix, "/venv"), (str(Path.cwd()), "/app"), (str(Path.home()), "/home/user")]
        lines = b"".join(file.read_bytes() for file in sorted(self.recording.glob("recording-*.jsonl")))
        for path, name in replaced:
            lines = lines.replace(path.encode(), name.encode())
        packed = zstandard.ZstdCompressor(level=19).compress(lines)
        (target / "recording" / "recording-000001.jsonl.zst").write_bytes(packed)
        (target / "drill.json").write_text(json.dumps(self.stored) + "\n", "utf-8")
        (target / "times.json").write_text(json.dumps(self.times) + "\n", "utf-8")

    def _json(self, name: str) -> dict[str, Any]:
        """Raises UserError when the file is missing or not part of a drill."""
        file = self.folder / name
        try:
            found = json.loads(file.read_text("utf-8"))
        except OSError as error:
            raise cannot_read(file, error) from None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise UserError(f"{file} is damaged or not part of a drill; run the drill again")
        return found
