"""One trial: a driver of its own runs jobs on a plan, and what it did is measured from its recording."""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ledgerops.common.shutdown import Stop
from ledgerops.errors import writing_to
from ledgerops.load.test.driver import ENDED, NAME, TrialRequest
from ledgerops.load.test.measure import Measured
from ledgerops.load.test.plan_batches import PlanBatch, done
from ledgerops.load.test.plans import Due
from ledgerops.load.test.recorded import read_recorded
from ledgerops.model.records import Progress
from ledgerops.servers.process import Process

MAX_START_SECONDS = 180.0  # that Spark and the jobs may take to start on a busy machine
#: A driver that needs longer to stop its queries between two batches and to complete the recording is killed.
MAX_END_SECONDS = 45.0
LOOK_SECONDS = 0.25  # between two looks at the driver
ERRORS = "driver.err"

Say = Callable[[str, float], None]  # what is done now, and how much of the trial is over, 0 to 1


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial that is over; its figures are read from the files in its folder."""

    folder: Path
    wanted: TrialRequest
    origin: float | None  # None: it did not start
    errors: dict[str, str]  # job -> why it failed, in one line
    given_recording: Path | None = None  # made elsewhere, not in `folder`
    in_plan: Callable[[Sequence[Progress]], list[PlanBatch]] = done  # gives batches in the terms of the plan

    @property
    def recording(self) -> Path:
        """Folder of the recording that was made during the trial."""
        return self.given_recording or self.folder / NAME / "recording"

    def measured(self) -> dict[str, Measured]:
        """What each job did."""
        wanted, origin = self.wanted, self.origin or 0.0
        begin, due = origin + wanted.warm_up, Due(wanted.plan, origin)
        there = self.origin is not None and self.recording.exists()
        read = read_recorded(self.recording).batches if there else {}
        end = begin + wanted.seconds
        return {
            job: Measured(job, wanted.trigger, begin, end, due, self.in_plan(read.get(job, [])), self.errors.get(job))
            for job in wanted.jobs
        }


def perform(wanted: TrialRequest, folder: Path, say: Say) -> Trial:
    """Runs a trial to its end. A driver that dies is a failed trial; Ctrl-C ends the driver and is raised again."""
    make_folder(folder)
    wanted.write(folder)
    with Stop().on_signals():
        driver = _start_driver(folder)
        try:
            _watch(driver, wanted, folder, say)
        finally:  # a signal ends the driver first: it must not load the machine during the next trial
            driver.stop(seconds=MAX_END_SECONDS)
    errors = _failures(folder)
    if driver.exit_code and not errors:
        errors = dict.fromkeys(wanted.jobs, _last_line(folder, driver.exit_code))
    return Trial(folder, wanted, _origin(folder), errors)


def make_folder(folder: Path) -> None:
    """Makes the folder of a trial. Raises UserError if it cannot be made."""
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)


def _start_driver(folder: Path) -> Process:
    """The driver, in a session of its own: Ctrl-C reaches us, and we end it in order."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LEDGEROPS_")}
    command = [sys.executable, "-m", "ledgerops.load.test.driver", str(folder)]
    return Process("the driver", command, folder / ERRORS, env=environ)


def _watch(driver: Process, wanted: TrialRequest, folder: Path, say: Say) -> None:
    """Reports progress until the driver has ended, or has had more time than it can need."""
    whole = wanted.warm_up + wanted.seconds
    limit, origin = time.monotonic() + MAX_START_SECONDS + whole + MAX_END_SECONDS, None
    while driver.alive and time.monotonic() < limit:
        if origin is None and (origin := _origin(folder)) is not None:
            limit = time.monotonic() + max(0.0, origin - time.time()) + whole + MAX_END_SECONDS
        if origin is None:
            say("starting Spark", 0.0)
        else:
            passed = time.time() - origin
            what = "warming up" if passed < wanted.warm_up else "measuring" if passed < whole else "stopping"
            say(what, min(1.0, max(0.0, passed / whole)))
        time.sleep(LOOK_SECONDS)


def _origin(folder: Path) -> float | None:
    try:
        return float(json.loads((folder / NAME / "run.json").read_text("utf-8"))["origin"])
    except (OSError, ValueError, KeyError):
        return None


def _failures(folder: Path) -> dict[str, str]:
    try:
        return dict(json.loads((folder / ENDED).read_text("utf-8"))["failures"])
    except (OSError, ValueError, KeyError):
        return {}


def _last_line(folder: Path, code: int) -> str:
    """The last line that the driver wrote, with how it ended."""
    how = f"the driver was killed by signal {-code}" if code < 0 else f"the driver exited with code {code}"
    for file in (folder / ERRORS, folder / NAME / "spark.log"):
        lines = [line.strip() for line in file.read_text("utf-8", "replace").splitlines()] if file.exists() else []
        last_line = next((line for line in reversed(lines) if line), None)
        if last_line is not None:
            return f"{how}: {last_line.removeprefix('ledgerops: ')[:300]}"
    return how
