"""When did the fault take effect? Judged from the files of the checkpoint and the logs of the workload, never from what
the diagnosis reads. Each function returns an `Effect`."""

from itertools import pairwise

import numpy as np

from ledgerops.drills.harness.batches import failures
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import Effect
from ledgerops.ledger.plan.plan import parse_plan


def after(seconds: float) -> Effect:
    """So long after the injection, by construction; 0 as when a broker is stopped."""
    return lambda bundle: bundle.times["injected"] + seconds


at_once = after(0.0)


def batches_outlast(seconds: float, times: int = 1) -> Effect:
    """The first batch after the injection that takes longer than `seconds`: when it had taken so long. Of a fault that
    grows slowly it is the first of so many `times` in a row: one may be late by chance."""

    def judge(bundle: Bundle) -> float | None:
        found: list[float] = []
        for commit in bundle.commits():
            # in a batch that was already running, only the time after the injection counts
            over = max(commit.planned, bundle.times["injected"]) + seconds
            found = [*found, over] if commit.done is None or commit.done > over else []
            if len(found) == times:
                return found[0] if found[0] <= bundle.times["ended"] else None
        return None

    return judge


def nothing_done_for(seconds: float) -> Effect:
    """No batch ends for `seconds`: the instant at which that was so."""

    def judge(bundle: Bundle) -> float | None:
        done = [commit.done for commit in bundle.commits() if commit.done is not None]
        for earlier, later in pairwise([*done, bundle.times["ended"]]):
            at = max(earlier, bundle.times["injected"]) + seconds
            if later > at:
                return at
        return None

    return judge


def fails(times: int = 1) -> Effect:
    """The query ends with an exception for the `times`th time."""
    return lambda bundle: next(iter(failures(bundle.folder)[times - 1 :]), None)


def new_keys(count: int) -> Effect:
    """When that batch was done with which the query had read so many rows since the injection, a new key in each."""

    def judge(bundle: Bundle) -> float | None:
        before = 0
        for commit in bundle.commits():
            if commit.planned < bundle.times["injected"]:
                before = commit.read
                continue
            if commit.read - before >= count and commit.done is not None:
                return commit.done
        return None

    return judge


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
