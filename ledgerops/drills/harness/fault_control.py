"""Faults on request: what the outside does now, in a file that the application and its Python workers read (see
`applications/outside.py`)."""

from pathlib import Path
from typing import Any

from ledgerops.common.files import write_json


class FaultControl:
    """The control file of a drill, which nobody else writes."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._values: dict[str, Any] = {}

    def __call__(self, key: str, default: Any = None) -> Any:
        """The value that holds now; `default` until one is set."""
        return self._values.get(key, default)

    def set(self, **values: Any) -> None:
        """Adds values to the file, which a reader sees whole; None removes a key."""
        self._values = {key: value for key, value in (self._values | values).items() if value is not None}
        write_json(self.file, self._values)
