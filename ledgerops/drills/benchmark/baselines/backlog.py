"""The view of a Kafka lag tool: the number of offsets that are not read yet, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ledgerops.drills.benchmark.baselines.data import Answer, BenchmarkCase, answered
from ledgerops.drills.benchmark.baselines.thresholds import scrapes

BACKLOG = "ledgerops_query_backlog_offsets"
WINDOW = 4  # scrapes over which a lag tool asks whether the lag grew, and was never 0


def grows(backlog: Sequence[float]) -> bool:
    """Whether a backlog never shrank within the window, and is larger at its end."""
    if len(backlog) < WINDOW:
        return False
    lately = backlog[-WINDOW:]
    return lately[0] > 0 and all(a <= b for a, b in pairwise(lately)) and lately[-1] > lately[0]


def by_backlog(case: BenchmarkCase) -> list[Answer]:
    """`input-overload` while the backlog grows; nothing while it is constant, shrinks, or is not known."""
    seen: list[float] = []
    found = []
    for at, values in scrapes(case, (BACKLOG,)):
        seen.append(values[BACKLOG])
        found.append(answered(case.name, at, ("input-overload",) if grows(seen) else ()))
    return found
