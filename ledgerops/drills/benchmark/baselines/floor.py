"""What a diagnosis must beat: always the same cause, and causes drawn at random."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ledgerops.drills.benchmark.baselines.data import Answer, BenchmarkCase, answered

RANKS = 3


def most_frequent(truths: Iterable[Mapping[str, Any]]) -> str:
    """The cause that most faults accept. It is taken from the truth, which is generous."""
    return str(Counter(cause for truth in truths for cause in truth["accepted"]).most_common(1)[0][0])


def always(case: BenchmarkCase, cause: str) -> list[Answer]:
    """This cause, of every fault and of every healthy case."""
    return [answered(case.name, case.ended, (cause,))]


def chance(case: BenchmarkCase, causes: Collection[str]) -> list[Answer]:
    """Three of the causes, drawn at random; the same ones in each run."""
    drawn = random.Random(case.name).sample(sorted(causes), min(RANKS, len(causes)))
    return [answered(case.name, case.ended, drawn)]
