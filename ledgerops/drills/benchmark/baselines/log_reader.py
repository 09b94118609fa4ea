"""A reader of event logs that anybody can install: spark-ignis, whose rules know stages and tasks, not batches.

It reads a log as a whole, so that it answers at the end of the case. Nearly every log has a stage with a slow first
task; a rule counts only where it is met by a fifth of the stages, and the one that most stages meet comes first.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from ledgerops.common.bounded_lines import numbered_lines
from ledgerops.drills.benchmark.baselines.data import Answer, BenchmarkCase, answered
from ledgerops.errors import UserError

MIN_STAGES_SHARE = 0.2
FEW_PARTITIONS = "too few partitions"  # what partition-count also says
# what each of its rules would be taken for
CAUSES: Mapping[str, tuple[str, ...]] = {
    "data-skew": ("key-skew", "straggler", "source-partition-skew"),
    "gc-pressure": ("gc-pressure",),
    "spill": ("memory-spill",),
    "failed-tasks": ("query-failed", "executor-lost", "crash-loop"),
    "partition-count": ("too-many-tasks",),
    FEW_PARTITIONS: ("input-overload",),
    "shuffle-size": ("input-overload",),
}


def causes_of(rules: Iterable[str], stages: int) -> tuple[str, ...]:
    """The causes that its findings name, one rule for each; `stages` have run."""
    found: dict[str, None] = {}
    for rule, count in Counter(rules).most_common():
        if count >= MIN_STAGES_SHARE * stages:
            found |= dict.fromkeys(CAUSES.get(rule, ()))
    return tuple(found)


def by_log_reader(case: BenchmarkCase, program: Path) -> list[Answer]:
    """What the program says of the event log of a case. Raises UserError when it cannot be run."""
    with TemporaryDirectory() as folder:
        whole, stages = Path(folder) / "log.json", 0
        with whole.open("wb") as out:
            for file in sorted((case.folder / "eventlog").rglob("events_*")):
                for _, line in numbered_lines(file):
                    stages += line.startswith(b'{"Event":"SparkListenerStageCompleted"')
                    out.write(line)
        try:
            done = subprocess.run([program, "analyze", whole, "-o", "json"], capture_output=True, check=False)
            given = json.loads(done.stdout)["findings"]
        except (OSError, ValueError, KeyError) as error:
            raise UserError(f"cannot run {program}: {error}; make benchmark makes its environment") from None
    return [answered(case.name, case.ended, causes_of(map(_rule, given), stages))]


def _rule(finding: Mapping[str, str]) -> str:
    few = finding["rule"] == "partition-count" and "under-utilized" in finding["message"]
    return FEW_PARTITIONS if few else finding["rule"]
