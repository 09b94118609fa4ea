"""Faults by request: a control file that what runs in the driver, or in its Python workers, looks into.

The surgeon writes it, whole and at once; a sink or a user-defined function reads it as often as it likes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ledgerops.common.files import write_json
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.sinks.batches import by_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import DataStreamWriter

LOOK = 0.2  # seconds for which what was read holds
Before = Callable[["Chaos", int], None]


class Chaos:
    """The control file of a drill. Can be sent to Python workers: it is only a path and what was read last."""

    def __init__(self, file: Path | str) -> None:
        self.file = str(file)
        self._read_at = 0.0
        self._values: dict[str, Any] = {}

    def __call__(self, key: str, default: Any = None) -> Any:
        """The value that holds now; `default` until the surgeon sets one."""
        now = time.monotonic()
        if now - self._read_at > LOOK:
            self._read_at = now
            try:
                self._values = json.loads(Path(self.file).read_text("utf-8"))
            except (OSError, ValueError):
                self._values = {}
        return self._values.get(key, default)

    def set(self, **values: Any) -> None:
        """Adds to what the file says; None takes a key away."""
        file = Path(self.file)
        try:
            held = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            held = {}
        held = {key: value for key, value in (held | values).items() if value is not None}
        write_json(file, held)


def obey(chaos: Chaos, batch: int) -> None:
    """What every drill's sink does before it writes: `sleep` seconds, `stall` seconds in every `every`th batch, `block`
    until released, `fail` with a message."""
    time.sleep(float(chaos("sleep", 0.0)))
    if chaos("stall") and batch % int(chaos("every", 1)) == 0:
        time.sleep(float(chaos("stall")))
    while chaos("block"):
        time.sleep(LOOK)
    if chaos("fail"):
        raise OSError(str(chaos("fail")))


class ChaosSink:
    """Works the rows off without keeping them, after it did what the control file asks; notes each write in a log."""

    remembers: ClassVar[bool] = False

    def __init__(self, chaos: Chaos, log: Path, before: Before = obey) -> None:
        self._chaos, self._log, self._before = chaos, log, before

    def __str__(self) -> str:
        return "a sink that may be told to fail"

    def last_batch(self, job: Job, checkpoint: Path) -> int | None:
        return None

    def write(self, job: Job, rows: DataFrame, checkpoint: Path) -> DataStreamWriter:
        return by_batch(job, rows, checkpoint, self.write_batch)

    def write_batch(self, rows: DataFrame, batch: int) -> None:
        """Writes one batch, and says when it began, when the fault let it go and when it was done."""
        began = time.time()
        self._before(self._chaos, batch)
        released = time.time()
        rows.write.format("noop").mode("overwrite").save()
        line = {"batch": batch, "began": began, "released": released, "ended": time.time()}
        with self._log.open("a") as log:
            log.write(json.dumps(line) + "\n")
