"""A driver of its own for one trial: `python -m ledgerops.load.test.driver SPEC.json`.

The clock of the plan starts only after Spark has: what came due while a JVM started would be a backlog that no
measurement asked for. Reading is open loop, without a cap on a batch's rows. Written into the folder: run.json
with the origin, the recording, and at the end `ended.json` with what failed.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.common.files import write_json
from ledgerops.errors import UserError
from ledgerops.input_files import read_text

if TYPE_CHECKING:
    from ledgerops.common.shutdown import Stop
    from ledgerops.ledger.run.app import ActiveRun

LEAD_SECONDS = 3.0  # from Spark's start to the plan's: queries start meanwhile
ENDED = "ended.json"
NAME = "run"  # of the run's folder within the trial's


@dataclass(frozen=True, slots=True)
class Spec:
    """What a driver runs. `plan` is the plan's YAML text, `seconds` are of the plan's clock."""

    jobs: tuple[str, ...]
    plan: str
    title: str
    trigger: float
    seconds: float
    folder: str
    cores: int = 2

    def write(self, file: Path) -> None:
        """Writes the spec to `file` as JSON."""
        file.write_text(json.dumps(asdict(self)) + "\n", "utf-8")

    @classmethod
    def read(cls, file: Path) -> Spec:
        """The spec in `file`. Raises OSError, ValueError or TypeError if the file is missing or has another form."""
        fields = json.loads(read_text(file))
        return cls(**{**fields, "jobs": tuple(fields["jobs"])})


def run(spec: Spec) -> int:
    """Runs the jobs to the end of the plan. Returns 0, or 1 if a query failed. Raises UserError if it cannot start."""
    from ledgerops.common.shutdown import Stop
    from ledgerops.ledger.jobs import choose_jobs
    from ledgerops.ledger.plan.plan import parse_plan
    from ledgerops.ledger.run.app import RunSetup, start_run
    from ledgerops.ledger.run.run_dir import RunDir
    from ledgerops.ledger.run.source import RunSource
    from ledgerops.ledger.run.spark_session import open_session, output_to
    from ledgerops.ledger.run.start import PROVIDER, ROCKSDB, SESSION_CONF

    jobs, plan = choose_jobs(spec.jobs), parse_plan(spec.plan, spec.title)
    source = RunSource("embedded", spec.title, plan.digest, plan=plan)
    folder = RunDir(Path(spec.folder), NAME)
    folder.path.mkdir(parents=True, exist_ok=True)
    stop = Stop()
    with stop.on_signals():
        with output_to(folder.log):  # `start_run` takes the session that there is
            open_session(None, spec.cores, folder.path, SESSION_CONF, log=folder.log)
        origin = time.time() + LEAD_SECONDS
        note, resumed = folder.open(source.note(origin), fresh=True)
        setup = RunSetup(
            jobs=jobs,
            source=source,
            folder=folder,
            note=note,
            resumed=resumed,
            cores=spec.cores,
            port=0,
            trigger=spec.trigger,
            conf={PROVIDER: ROCKSDB},  # a minute of state at the highest rate need not fit the heap
        )
        running = start_run(setup)
        try:
            stop.calm()
            _wait_until(origin + spec.seconds, running, stop)
            failures = running.failures()
            write_json(Path(spec.folder) / ENDED, {"at": time.time(), "failures": failures})
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
        sys.exit(run(Spec.read(Path(sys.argv[1]))))
    except UserError as error:
        print(f"ledgerops: {error}", file=sys.stderr)
        sys.exit(2)
