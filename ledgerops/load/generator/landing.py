"""Records to a landing folder: JSON lines in FOLDER/TABLE/*.jsonl, a file each second or some ten thousand records.

A file is written under a name that begins with a dot, which readers pass over, and gets its own when it is whole.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from ledgerops.common.files import write_bytes
from ledgerops.errors import UserError, writing_to
from ledgerops.ledger.plan.poison import KEYLESS
from ledgerops.load.generator.latency_samples import LatencySample
from ledgerops.load.generator.records import Records

FILE_RECORDS = 20_000
FILE_SECONDS = 1.0


class LandingTarget:
    """`name` begins each file's name: another load into the same folder needs another one."""

    kinds: Sequence[str] = KEYLESS
    refused = waiting = 0
    problem: str | None = None

    def __init__(self, folder: Path, table: str, name: str) -> None:
        """Raises UserError when the folder cannot be written to, or holds files of that name."""
        self.folder = folder / table
        self.acknowledged = 0
        self._name, self._files = name, 0
        self._lines: list[bytes] = []
        self._samples: list[LatencySample] = []
        self._since = time.monotonic()
        with writing_to(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            if any(self.folder.glob(f"{name}-*.jsonl")):
                raise UserError(f"{self.folder} already contains this load; give another folder, or empty it")

    def send(self, records: Records, start: int, end: int) -> int:
        """Takes all records [start, end) and returns `end`. Raises UserError if the file cannot be written."""
        if not self._lines:
            self._since = time.monotonic()
        self._lines += [value for value in records.values[start:end] if value is not None]
        for sample in records.samples:
            if start <= sample.place < end:
                sample.created = time.time()
                self._samples.append(sample)
        self.serve()
        return end

    def serve(self) -> None:
        """Writes a file if enough records or time have accumulated. Raises UserError if it cannot be written."""
        if len(self._lines) >= FILE_RECORDS or time.monotonic() - self._since >= FILE_SECONDS:
            self._write()

    def close(self) -> None:
        """Writes the remaining records. Raises UserError if the file cannot be written."""
        self._write()

    def _write(self) -> None:
        if not self._lines:
            return
        file = self.folder / f"{self._name}-{self._files:06}.jsonl"
        with writing_to(self.folder):
            write_bytes(file, b"\n".join(self._lines) + b"\n")
        self._files += 1
        self.acknowledged += len(self._lines)
        self._lines = []
        for sample in self._samples:
            sample.sampler.keep(sample, time.time(), None)
        self._samples = []
