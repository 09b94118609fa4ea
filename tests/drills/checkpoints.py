"""Checkpoints of queries that never ran: files with the times of batches."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

T0 = 1_790_000_000.0


def checkpoint(
    folder: Path, planned: Iterable[float], done: Iterable[float] = (), read: Sequence[int] | None = None
) -> Path:
    """A batch for each time (seconds after T0) at which one was planned and done; `read`: rows so far, after each."""
    for kind, times in (("offsets", planned), ("commits", done)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for number, at in enumerate(times):
            file, rows = folder / kind / str(number), read[number] if read else 0
            file.write_text(f"v1\n{{}}\n{json.dumps({'transactions': {'0': rows - rows // 2, '1': rows // 2}})}\n")
            os.utime(file, (T0 + at, T0 + at))
    return folder
