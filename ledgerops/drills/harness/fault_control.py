"""Faults on request: the control file of the outside, which the application and its Python workers read.

The injector replaces the file atomically; a sink or a user-defined function may read it at any time.
"""

import json
import time
from pathlib import Path
from typing import Any

from ledgerops.common.files import write_json

REREAD_SECONDS = 0.2  # how long a value that was read is used


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
            self._values = self._read()
        return self._values.get(key, default)

    def set(self, **values: Any) -> None:
        """Adds values to the file; None removes a key."""
        held = self._read() | values
        write_json(Path(self.file), {key: value for key, value in held.items() if value is not None})

    def _read(self) -> dict[str, Any]:
        try:
            return dict(json.loads(Path(self.file).read_text("utf-8")))
        except (OSError, ValueError):
            return {}
