"""Watches a case from outside, each second: what `/diagnosis` answers, and how much of the machine is used."""

import json
import os
import threading
import time
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil

from ledgerops.drills.harness.processes import cpu_seconds
from ledgerops.drills.harness.watching import watching

POLL_SECONDS = 1.0
MAX_ANSWER_SECONDS = 10.0


def polling(folder: Path, pid: int) -> AbstractContextManager[None]:
    """Writes live.jsonl and machine.jsonl to the folder of a case, whose application is the process `pid`."""
    used = _Machine(psutil.Process(pid))

    def watch(url: str, stopped: threading.Event) -> None:
        with (folder / "live.jsonl").open("w") as live, (folder / "machine.jsonl").open("w") as machine:
            while not stopped.wait(POLL_SECONDS):
                at = time.time()
                live.write(json.dumps({"at": at, **_answer(url)}) + "\n")
                live.flush()
                machine.write(json.dumps({"at": at, **used.look()}) + "\n")

    return watching(folder, watch)


def _answer(url: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"{url}/diagnosis", timeout=MAX_ANSWER_SECONDS) as answer:
            return {"diagnosis": json.load(answer)}
    except (OSError, ValueError) as error:
        return {"problem": str(error)}


class _Machine:
    """How much of the machine is used, and how much of that by one process and those below it."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        psutil.cpu_percent()  # the first call only sets the beginning
        self._spent, self._at = cpu_seconds(process), time.monotonic()

    def look(self) -> dict[str, float]:
        """Percent of all cores since the last look, in total and of the process; and the load average."""
        used, now, spent = psutil.cpu_percent(), time.monotonic(), cpu_seconds(self._process)
        own = 100.0 * (spent - self._spent) / max(0.1, now - self._at) / (psutil.cpu_count() or 1)
        self._spent, self._at = spent, now
        return {"used": used, "own": round(own, 1), "load": os.getloadavg()[0]}
