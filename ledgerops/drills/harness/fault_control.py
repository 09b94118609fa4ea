"""Faults on request: a control file that the sinks and functions of the driver and its Python workers read.

The injector replaces the file atomically; a sink or a user-defined function may read it at any time.
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

REREAD_SECONDS = 0.2  # how long a value that was read is used
Before = Callable[["FaultControl", int], None]


class FaultControl:
    """The control file of a drill. Can be sent to Python workers: it is only a path and what was read last."""

    def __init__(self, file: Path | str) -> None:
        self.file = str(file)
        self._read_at = 0.0
        self._values: dict[str, Any] = {}

    def __call__(self, key: str, default: Any = None) -> Any:
        """The value that holds now; `default` until the injector sets one."""
        now = time.monotonic()
        if now - self._read_at > REREAD_SECONDS:
            self._read_at = now
            try:
                self._values = json.loads(Path(self.file).read_text("utf-8"))
            except (OSError, ValueError):
                self._values = {}
        return self._values.get(key, default)

    def set(self, **values: Any) -> None:
        """Adds values to the file; None removes a key."""
        file = Path(self.file)
        try:
            held = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            held = {}
        held = {key: value for key, value in (held | values).items() if value is not None}
        write_json(file, held)


def apply_faults(control: FaultControl, batch: int) -> None:
    """Applies the faults of a sink before it writes: `sleep` seconds, `stall` seconds in every `every`th batch, `block`
    until released, `fail` with a message."""
    time.sleep(float(control("sleep", 0.0)))
    if control("stall") and batch % int(control("every", 1)) == 0:
        time.sleep(float(control("stall")))
    while control("block"):
        time.sleep(REREAD_SECONDS)
    if control("fail"):
        raise OSError(str(control("fail")))


class ControlledSink:
    """Processes rows without keeping them, after it applied the faults of the control file; logs each write."""

    remembers: ClassVar[bool] = False

    def __init__(self, control: FaultControl, log: Path, before: Before = apply_faults) -> None:
        self._control, self._log, self._before = control, log, before

    def __str__(self) -> str:
        return "a sink whose faults are controlled by a file"

    def last_batch(self, job: Job, checkpoint: Path) -> int | None:
        """None: the sink keeps no rows, so it has no batch to name."""
        return None

    def write(self, job: Job, rows: DataFrame, checkpoint: Path) -> DataStreamWriter:
        """The writer of `rows`, which calls `write_batch` for each batch."""
        return by_batch(job, rows, checkpoint, self.write_batch)

    def write_batch(self, rows: DataFrame, batch: int) -> None:
        """Writes one batch and logs when it began, when the fault released it and when it was done."""
        began = time.time()
        self._before(self._control, batch)
        released = time.time()
        rows.write.format("noop").mode("overwrite").save()
        line = {"batch": batch, "began": began, "released": released, "ended": time.time()}
        with self._log.open("a") as log:
            log.write(json.dumps(line) + "\n")
