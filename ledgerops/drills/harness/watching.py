"""Threads that watch a case from outside while it runs."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self


class Watching(ABC):
    """A thread that watches the case in `folder` until it is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Asks no more, and waits until all is written."""
        self._stopped.set()
        self._thread.join()

    def _exporter(self) -> str:
        """The address of its exporter that the application printed; empty before that."""
        found = re.search(r"(http://[\w.]+:\d+)", (self._folder / "app.log").read_text("utf-8", "replace"))
        return found.group(1) if found else ""

    @abstractmethod
    def _run(self) -> None:
        """Watches until `_stopped` is set."""
