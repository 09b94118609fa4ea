"""The folder of a recording belongs to one process at a time: two would delete each other's segments."""

import logging
from itertools import chain, count
from pathlib import Path
from typing import IO

from ledgerops.common.files import locked

log = logging.getLogger("ledgerops")
LOCK = ".lock"


class Claim:
    """`folder` is the folder that was asked for, or one in it while another process records there, such as a second
    application with the same settings; None where none was asked for. The claim ends with `close`, or with the process.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lock: IO[str] | None = None
        if folder is None:
            return
        try:
            folder = folder.absolute()  # the application may go to another working directory
            # a place that another has left is taken again: each may grow to the bound of a recording
            for self.folder in chain((folder,), (folder / f"application-{number}" for number in count(2))):
                self.folder.mkdir(parents=True, exist_ok=True)
                self._lock = locked(self.folder / LOCK)
                if self._lock is not None:
                    break
        except (OSError, ImportError):  # who writes there says why it cannot; or there are no locks
            return
        if self.folder != folder:
            log.warning("another application records to %s: recording to %s", folder, self.folder)

    def close(self) -> None:
        """Lets another process record there. May be called twice; in a forked child it closes the child's copy only."""
        if self._lock is not None:
            self._lock.close()
