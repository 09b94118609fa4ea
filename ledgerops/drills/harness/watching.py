"""Threads that watch a case from outside while it runs."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Watch = Callable[[str, threading.Event], None]  # the address of the exporter, and what is set at the end


@contextmanager
def watching(folder: Path, watch: Watch) -> Iterator[None]:
    """Runs `watch` in a thread, once the log of the application in `folder` names its exporter; ends with it."""
    stopped = threading.Event()

    def work() -> None:
        while not (found := re.search(r"http://[\w.]+:\d+", (folder / "app.log").read_text("utf-8", "replace"))):
            if stopped.wait(1.0):
                return
        watch(found[0], stopped)

    thread = threading.Thread(target=work, name="watching", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()  # until all is written
