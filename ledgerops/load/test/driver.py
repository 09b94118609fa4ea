"""A driver of its own for one trial: `python -m ledgerops.load.test.driver FOLDER`.

The clock of the plan starts only after Spark has: what came due while a JVM started would be a backlog that no
measurement asked for. Reading is open loop, without a cap on a batch's rows. The folder has the request; written into
it: run.json with the origin, the recording, and at the end `ended.json` with what failed.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ledgerops.common.files import write_json
from ledgerops.common.shutdown import Stop
from ledgerops.errors import UserError
from ledgerops.input_files import read_text
from ledgerops.ledger.jobs import choose_jobs
from ledgerops.ledger.plan.plan import LoadPlan, parse_plan
from ledgerops.ledger.run.app import ActiveRun, RunSetup, start_run
from ledgerops.ledger.run.run_dir import RunDir
from ledgerops.ledger.run.source import RunSource
from ledgerops.ledger.run.spark_session import open_session, output_to
from ledgerops.ledger.run.start import PROVIDER, ROCKSDB, SESSION_CONF

LEAD_SECONDS = 3.0  # from Spark's start to the plan's: queries start meanwhile
REQUEST, ENDED = "request.json", "ended.json"
NAME = "run"  # of the run's folder within the trial's


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """What to run for how long. `warm_up` seconds of the plan are not measured, the `seconds` after them are."""

    jobs: tuple[str, ...]
    plan: LoadPlan
    warm_up: float
    seconds: float
    trigger: float | None  # None: not known, of jobs that ran elsewhere
    cores: int | None = 2  # None: they ran elsewhere

    def write(self, folder: Path) -> None:
        """Writes the request to the folder of a trial."""
        write_json(folder / REQUEST, asdict(self) | {"plan": {"text": self.plan.text, "name": self.plan.name}})

    @classmethod
    def read(cls, folder: Path) -> TrialRequest:
        """The request in the folder of a trial."""
        found = json.loads(read_text(folder / REQUEST))
        return cls(**{**found, "jobs": tuple(found["jobs"]), "plan": parse_plan(**found["plan"])})


def run(wanted: TrialRequest, place: Path) -> int:
    """Runs the jobs to the end of the plan. Returns 0, or 1 if a query failed. Raises UserError if it cannot start."""
    assert wanted.trigger is not None and wanted.cores is not None
    jobs, plan = choose_jobs(wanted.jobs), wanted.plan
    source = RunSource("embedded", plan.name, plan.digest, plan=plan)
    folder = RunDir(place.resolve(), NAME)
    folder.path.mkdir(parents=True, exist_ok=True)
    stop = Stop()
    with stop.on_signals():
        with output_to(folder.log):  # `start_run` takes the session that there is
            open_session(None, wanted.cores, folder.path, SESSION_CONF, log=folder.log)
        origin = time.time() + LEAD_SECONDS
        note, resumed = folder.open(source.note(origin), fresh=True)
        setup = RunSetup(
            jobs=jobs,
            source=source,
            folder=folder,
            note=note,
            resumed=resumed,
            cores=wanted.cores,
            port=0,
            trigger=wanted.trigger,
            conf={PROVIDER: ROCKSDB},  # a minute of state at the highest rate need not fit the heap
        )
        running = start_run(setup)
        try:
            stop.calm()
            _wait_until(origin + wanted.warm_up + wanted.seconds, running, stop)
            failures = running.failures()
            write_json(place / ENDED, {"at": time.time(), "failures": failures})
            running.stop()
        finally:
            running.close()
            folder.close()
    return 1 if failures else 0


def _wait_until(end: float, running: ActiveRun, stop: Stop) -> None:
    """Returns at `end` (epoch seconds), or before when no query is running or a stop was asked for."""
    while not stop.asked and not running.over and (left := end - time.time()) > 0:
        stop.wait(min(0.25, left))


if __name__ == "__main__":
    try:
        sys.exit(run(TrialRequest.read(Path(sys.argv[1])), Path(sys.argv[1])))
    except UserError as error:
        print(f"ledgerops: {error}", file=sys.stderr)
        sys.exit(2)
