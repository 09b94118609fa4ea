"""The folder of a run: checkpoints, outputs, recording, log, and the note from which a restart goes on."""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from ledgerops.errors import UserError


@dataclass(frozen=True, slots=True)
class Note:
    """What must stay the same for a checkpoint to mean the same rows."""

    source: str  # "embedded" or "replay"
    plan: str  # name of the plan, or of the file that is replayed
    digest: str  # of the plan's text, or of the file
    origin: float  # the instant at which the plan's clock stood at zero


class RunFolder:
    """`root/name`, locked while the process lives: two runs on one checkpoint would destroy it."""

    def __init__(self, root: Path, name: str) -> None:
        self.path = root / name
        self._lock: TextIO | None = None

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def outputs(self) -> Path:
        return self.path / "output"

    @property
    def recording(self) -> Path:
        return self.path / "recording"

    @property
    def work(self) -> Path:
        """Prepared input files, and the rows of a file that could not be read."""
        return self.path / "input"

    @property
    def log(self) -> Path:
        return self.path / "spark.log"

    def open(self, wanted: Note, fresh: bool) -> tuple[Note, bool]:
        """The note to run by, and whether it goes on with an earlier run. `fresh` moves an earlier run aside.

        Raises UserError when the earlier run was of another source or plan, or is still at work.
        """
        self._acquire()
        try:
            return self._note(wanted, fresh)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _note(self, wanted: Note, fresh: bool) -> tuple[Note, bool]:
        if fresh and (self.path / "run.json").exists():
            self._move_aside()
        earlier = self._read()
        if earlier is None or not any(self.checkpoints.glob("*/offsets/*")):  # nothing planned: the clock begins now
            self._write(wanted)
            return wanted, False
        if (earlier.source, earlier.digest) != (wanted.source, wanted.digest):
            raise UserError(
                f"{self.path} holds a run of another {'plan' if wanted.source == 'embedded' else 'file'} "
                f"({earlier.plan}, since changed?); add --fresh to begin anew, or --out another folder"
            )
        return earlier, True

    def _acquire(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / "lock").open("a+")
        except OSError as error:
            raise UserError(f"cannot write to {self.path}: {(error.strerror or str(error)).lower()}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip()
            lock.close()
            raise UserError(
                f"{self.path} is in use by process {holder or 'unknown'}; stop that run, or add --out another folder"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def _read(self) -> Note | None:
        file = self.path / "run.json"
        try:
            return Note(**json.loads(file.read_text("utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"cannot read {file} ({error}); add --fresh to begin anew") from None

    def _write(self, note: Note) -> None:
        # written whole before it gets its name: a crash must not leave half a note beside good checkpoints
        part = self.path / "run.json.part"
        part.write_text(json.dumps(asdict(note), indent=1) + "\n", "utf-8")
        part.replace(self.path / "run.json")

    def _move_aside(self) -> None:
        aside = self.path.with_name(f"{self.path.name}-before-{time.strftime('%Y%m%d-%H%M%S')}")
        assert self._lock is not None
        self.path.rename(aside)
        self.close()
        self._acquire()
