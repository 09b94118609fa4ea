"""The folder of a run: checkpoints, outputs, recording, log, and the note from which a restart goes on."""

import fcntl
import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TextIO

from ledgerops.checkpoint.batch_log import BatchLog
from ledgerops.common.files import write_json
from ledgerops.errors import UserError, os_reason, writing_to
from ledgerops.input_files import read_text
from ledgerops.ledger.plan.manifest import is_instant


@dataclass(frozen=True, slots=True)
class RunNote:
    """What must stay the same for a checkpoint to mean the same rows."""

    source: str  # "embedded", "replay", "kafka" or "files"
    plan: str  # name of the plan, of the file that is replayed or the landing folder, or Kafka's addresses
    digest: str  # of the plan's meaning, of the file, of the folder's path, or of the cluster's id
    origin: float  # the instant at which the plan's clock stood at zero
    sink: str = "parquet"
    target: str = ""  # where the sink writes, without a password; empty: in the run's folder
    topics: dict[str, str] = field(default_factory=dict)  # Kafka's ids by name: a topic made anew has another


class RunDir:
    """`root/name`, locked while the process lives: two runs on one checkpoint would destroy it."""

    def __init__(self, root: Path, name: str) -> None:
        self.path = root / name
        self.checkpoints = self.path / "checkpoints"  # a folder for each job
        self.outputs = self.path / "output"  # files and tables, in a folder for each job
        self.recording = self.path / "recording"  # what `ledgerops diagnose` reads
        self.work = self.path / "input"  # prepared input files, and the rows of a file that could not be read
        self.log = self.path / "spark.log"  # of Spark's JVM
        self._lock: TextIO | None = None

    @property
    def app(self) -> str:
        """The application's name, such as ledgerops runs/default: of a resumed run the same, of another run another."""
        return f"ledgerops {'/'.join(self.path.absolute().parts[-2:])}"

    def open(self, wanted: RunNote, fresh: bool) -> tuple[RunNote, bool]:
        """The note to run by, and whether it goes on with an earlier run. `fresh` moves an earlier run aside.

        Raises UserError when the earlier run had another source or sink, or is still at work.
        """
        self._acquire()
        try:
            return self._note(wanted, fresh)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Releases the lock, if it is held. The files stay."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _note(self, wanted: RunNote, fresh: bool) -> tuple[RunNote, bool]:
        if fresh and (self.path / "run.json").exists():
            self._move_aside()
        earlier = self._read()
        planned = any(BatchLog(folder).planned for folder in self.checkpoints.glob("*"))
        if earlier is None or not planned:  # the clock begins now
            self._write(wanted)
            return wanted, False
        self._compare(earlier, wanted)
        resumed = replace(earlier, plan=wanted.plan, topics={**earlier.topics, **wanted.topics})
        if resumed != earlier:
            self._write(resumed)  # a job that was added reads a topic more; a cluster may be reached by another address
        return resumed, True

    def _compare(self, earlier: RunNote, wanted: RunNote) -> None:
        """Refuses to go on with checkpoints that mean other rows, or that were written elsewhere."""
        remedy = "add --fresh to start over, or give another folder with --out"
        if earlier.source != wanted.source:
            raise UserError(
                f"{self.path} holds a run on another source ({earlier.source}, now {wanted.source}); {remedy}"
            )
        if earlier.digest != wanted.digest:
            kinds = {"embedded": "plan", "replay": "file", "kafka": "Kafka cluster", "files": "landing folder"}
            raise UserError(
                f"{self.path} holds a run of another {kinds[wanted.source]} ({earlier.plan}, since changed?); {remedy}"
            )
        anew = sorted(name for name, id in wanted.topics.items() if earlier.topics.get(name, id) != id)
        if anew:
            raise UserError(
                f"topic {', '.join(anew)} was deleted and created again since the last run, so the offsets in the "
                f"checkpoint are not valid; {remedy}"
            )
        if (earlier.sink, earlier.target) != (wanted.sink, wanted.target):
            was, now = (f"{note.sink} {note.target}".strip() for note in (earlier, wanted))
            raise UserError(f"{self.path} holds a run that wrote to {was}, not to {now}; {remedy}")

    def _acquire(self) -> None:
        with writing_to(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / "lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip()
            lock.close()
            raise UserError(
                f"{self.path} is in use by process {holder or 'unknown'}; stop that run, or give another folder with "
                "--out"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def _read(self) -> RunNote | None:
        file = self.path / "run.json"
        try:
            note = RunNote(**json.loads(read_text(file)))
            if not (is_instant(note.origin) and isinstance(note.topics, dict)):
                raise ValueError(f"origin {note.origin!r:.20}, topics {note.topics!r:.20}")
            return note
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise UserError(f"cannot read {file} ({error}); add --fresh to start over") from None

    def _write(self, note: RunNote) -> None:
        # whole or not at all: a crash must not leave half a note beside good checkpoints
        write_json(self.path / "run.json", asdict(note), indent=1)

    def _move_aside(self) -> None:
        name = f"{self.path.name}-before-{time.strftime('%Y%m%d-%H%M%S')}"
        names = (name if number == 1 else f"{name}-{number}" for number in count(1))
        assert self._lock is not None
        try:
            self.path.rename(next(aside for each in names if not (aside := self.path.with_name(each)).exists()))
        except OSError as error:
            reason = os_reason(error)
            raise UserError(
                f"cannot move {self.path} aside: {reason}; move it away yourself, or give another folder with --out"
            ) from None
        self.close()
        self._acquire()


def remove_unused(checkpoint: Path) -> None:
    """Removes a checkpoint without a planned batch, so that a new start decides where its sources begin."""
    if checkpoint.is_dir() and not BatchLog(checkpoint).planned:
        shutil.rmtree(checkpoint)
