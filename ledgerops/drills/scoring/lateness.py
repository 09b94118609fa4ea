"""Lateness of a query's results, from its checkpoint and its load plan: the truth about overload and catch-up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Effect
from ledgerops.ledger.plan.plan import parse_plan


def rows_wait(seconds: float, plan: str) -> Effect:
    """The instant at which the oldest unread row had waited for `seconds`. `plan`: the load plan of the query's first
    source, whose offsets count its rows."""

    def judge(bundle: Bundle) -> float | None:
        schedule, origin = parse_plan(plan).schedule, bundle.times["origin"]
        planned = [(commit.planned, commit.read) for commit in bundle.commits()]
        for (at, read), (until, _) in pairwise([*planned, (bundle.times["ended"], 0)]):
            waits = origin + float(schedule.due_time(np.array([read]))[0]) + seconds
            if max(at, waits) < until and max(at, waits) >= bundle.times["injected"]:
                return max(at, waits)
        return None

    return judge
