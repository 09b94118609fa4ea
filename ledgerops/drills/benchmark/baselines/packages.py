"""BARO and n-sigma on the metrics of a case, by their own package (fse-baro): see outside.py for how they are run.

They are told when the fault began, as in RCAEval. Where there is no such time, BARO's detection must see a change of
the batch duration, the lag, the backlog or the watermark first.
"""

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ledgerops.drills.benchmark.baselines.data import SERVICE, Answer, BenchmarkCase, Series, answered, moved, series
from ledgerops.drills.benchmark.baselines.mapping import causes_of
from ledgerops.errors import UserError

SCRIPT = Path(__file__).with_name("outside.py")


def request(case: BenchmarkCase) -> dict[str, Any]:
    """A case as outside.py takes it."""
    times, metrics = series(case.rows(), case.started, case.ended)
    return {
        "case": case.name,
        "time": times,
        "series": {
            metric.name: [float(value) if np.isfinite(value) else None for value in metric.values] for metric in metrics
        },
        "service": [metric.name for metric in metrics if metric.metric in SERVICE],
        "split": case.split if case.onset is not None else None,
    }


def answer(case: BenchmarkCase, asked: Mapping[str, Any], ranks: Iterable[str]) -> Answer:
    """The causes that the first metrics of a ranking name, each by how its mean moved."""
    metrics = {name: Series(name, np.array(values, float)) for name, values in asked["series"].items()}
    ways = ((name, moved(*metrics[name].around(asked["time"], case.split))) for name in ranks)
    return answered(case.name, case.ended, causes_of(ways))


def by_package(python: Path, method: str, cases: Sequence[BenchmarkCase]) -> Iterator[tuple[Answer, str]]:
    """The answer of one method to each case, and why it has none where it failed. `python` is that of the environment
    of the packages. Raises UserError when it cannot be run."""
    asked = [request(case) for case in cases]
    lines = "".join(json.dumps(each) + "\n" for each in asked)
    try:
        ran = subprocess.run([python, SCRIPT, method], input=lines, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"cannot run {python}: {error}; make benchmark makes its environment") from None
    if ran.returncode:
        raise UserError(f"{method} ended early; is its package in {python.parent.parent}?")
    for case, each, line in zip(cases, asked, ran.stdout.splitlines(), strict=True):
        given = json.loads(line)
        yield answer(case, each, given["ranks"]), given["error"]
