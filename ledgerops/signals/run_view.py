"""One run of a query at one moment: its batches, its trigger, and who works for it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Any

from ledgerops.model.history import History
from ledgerops.model.records import LONG_RUNNING, Executor, Host, Observer, Plan, Progress, StageSummary, TaskSummary

WINDOW = 60.0  # seconds over which rates are taken
FRESHNESS = 60.0  # seconds that results may be old, unless the configuration says otherwise
BUSY_BATCHES = 10
ALIGNED = 0.06  # Spark starts a processing-time trigger on multiples of its interval, at most this late when idle
WARM_UP = 10.0  # seconds: six queries that start together on two cores need this long until their batches settle
SETTLED = 1  # the first batch of a run pays for planning and warm-up and says nothing about the rest


class RunView:
    """Signals of a history at `now`. Reads only; make a new one when either changes."""

    def __init__(
        self,
        history: History,
        now: float,
        hosts: Sequence[Host] = (),
        others: Sequence[History] = (),
        freshness: float = FRESHNESS,
        observer: Sequence[Observer] = (),
    ) -> None:
        self.history = history
        self.now = now
        later = bool(hosts) and hosts[-1].at > now  # of a query that has ended: they go on for the others
        self.hosts = [look for look in hosts if look.at <= now] if later else hosts  # oldest first
        self.others = others  # the other queries of the driver
        self.observer = observer  # looks of ledgerops at itself, oldest first
        self.freshness = freshness  # the objective: how old results may be, in seconds
        self.answers: dict[object, Any] = {}  # of functions of this view that are asked more than once

    @property
    def query(self) -> str:
        return self.history.query

    @cached_property
    def last(self) -> Progress | None:
        return self.history.last if self.batches else None

    @cached_property
    def plan(self) -> Plan:
        """What is known of the run's plan; all unknown when the plan was not read."""
        plan = self.history.plan
        return plan if plan is not None and plan.run_id == self.history.run_id else Plan(self.history.run_id or "")

    @cached_property
    def batches(self) -> Sequence[Progress]:
        """The remembered batches of the current run, oldest first."""
        return list(self.history.run)

    @cached_property
    def settled(self) -> Sequence[Progress]:
        """The run's batches without its first: that one pays for warm-up."""
        if self.batches and self.batches[0].batch_id == self.history.first_batch:
            return self.batches[SETTLED:]
        return self.batches

    @cached_property
    def steady(self) -> Sequence[Progress]:
        """The run's batches without its start: not the first one, none that began in the first WARM_UP seconds.

        A long first batch is followed by a long warm-up: what waited meanwhile makes the second one large.
        """
        if not self.batches:
            return []
        first = self.batches[0]
        if first.batch_id != self.history.first_batch:
            return self.batches
        began = max(
            min(first.started, self.history.started_at or first.started) + WARM_UP,
            first.ended + min(WARM_UP, first.duration),
        )
        return self.batches[max(SETTLED, bisect_left(self.batches, began, key=lambda batch: batch.started)) :]

    @cached_property
    def recent(self) -> Sequence[Progress]:
        """The batches that began in the last minute, at least the last three if there are so many."""
        fresh = [batch for batch in self.batches if batch.started >= self.now - WINDOW]
        return fresh if len(fresh) >= 3 else self.batches[-3:]

    @cached_property
    def trigger_interval(self) -> float | None:
        """Seconds between triggers: told by the plan, else seen from the starts of batches that had time to wait."""
        if self.plan.trigger_interval is not None:
            return self.plan.trigger_interval
        newest = self.batches[-20:]
        waited = [
            later.started - earlier.started
            for earlier, later in pairwise(newest)
            if later.started - earlier.ended > ALIGNED
        ]
        if len(waited) < 3:
            return None
        guess = round(median(waited), 1)
        aligned = [gap for gap in waited if abs(gap - guess) <= 2 * ALIGNED]
        return guess if guess > 0 and len(aligned) >= 0.8 * len(waited) else None

    @property
    def trigger_known(self) -> bool:
        """Whether the plan or the batches tell how often one begins; an event log and Spark Connect tell no plan."""
        return self.plan.trigger is not None or self.trigger_interval is not None

    @cached_property
    def longest_pause(self) -> float | None:
        """The most seconds between the end of a batch and the start of the next; None before two batches."""
        return max((later.started - earlier.ended for earlier, later in pairwise(self.batches)), default=None)

    @cached_property
    def usual_duration(self) -> float | None:
        """Median batch duration in seconds over the settled batches; None before three of them."""
        durations = [batch.duration for batch in self.settled]
        return median(durations) if len(durations) >= 3 else None

    @cached_property
    def busy_ratio(self) -> float | None:
        """Share of the time that batches took, over the last ten; 1 when they run back to back.

        None for continuous processing and real-time mode, whose batches fill their time whatever there is to do.
        """
        last = self.settled[-BUSY_BATCHES:]
        if len(last) < 2 or self.plan.trigger in LONG_RUNNING:
            return None
        interval = self.trigger_interval or 0.0
        final = max(last[-1].duration, interval)  # the last batch waits for its next trigger, too
        span = last[-1].started + final - last[0].started
        return min(1.0, sum(batch.duration for batch in last) / span) if span > 0 else None

    @cached_property
    def running_seconds(self) -> float | None:
        """How long the present trigger has been at work, as the watchdog saw it; None when nothing runs."""
        running = self.history.running
        return max(0.0, self.now - running.since) if running else None

    @cached_property
    def stateful(self) -> bool:
        return bool(self.plan.stateful) or bool(self.last and self.last.operators)

    @cached_property
    def executors(self) -> Sequence[Executor]:
        """The active executors, by the newest look that saw any: one that asked Spark in vain tells nothing of them."""
        looks = (look for look in reversed(self.hosts) if look.executors)
        return (
            [each for each in next(looks).executors if each.active]
            if any(look.executors for look in self.hosts)
            else []
        )

    @property
    def cores(self) -> int | None:
        """How many tasks can run at once; None while no executor was seen."""
        return sum(each.cores for each in self.executors) or None

    @cached_property
    def tasks(self) -> TaskSummary | None:
        """The stages of the newest batch whose tasks were read, of the current run."""
        for summary in reversed(self.history.tasks):
            if summary.run_id == self.history.run_id:
                return summary
        return None

    @cached_property
    def widest_stage(self) -> StageSummary | None:
        """The stage with most task time among those with several tasks: where skew costs most."""
        stages = [stage for stage in self.tasks.stages if stage.tasks > 1] if self.tasks else []
        return max(stages, key=lambda stage: stage.run_seconds, default=None)
