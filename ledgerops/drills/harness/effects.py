"""When did the fault take effect? Judged from the files of the checkpoint and the logs of the workload, never from what
the diagnosis reads. Each function returns an `Effect`."""

from __future__ import annotations

from itertools import pairwise

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Effect


def at_once(bundle: Bundle) -> float | None:
    """The injection is the effect, as when a broker is stopped."""
    return bundle.times["injected"]


def batches_outlast(seconds: float, times: int = 1) -> Effect:
    """The first batch after the injection that takes longer than `seconds`: when it had taken so long.

    Of a fault that grows slowly it is the first of so many `times` in a row: one may be late by chance.
    """

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


def dies(times: int = 1) -> Effect:
    """The query ends with an exception for the `times`th time."""

    def judge(bundle: Bundle) -> float | None:
        deaths = bundle.outcome().get("deaths", [])
        return float(deaths[times - 1]) if len(deaths) >= times else None

    return judge
