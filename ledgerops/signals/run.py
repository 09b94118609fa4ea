"""One run of a query at one moment: its batches, its plan, and the tasks of its newest batch."""

from bisect import bisect_left
from collections.abc import Sequence

from ledgerops.model.history import History
from ledgerops.model.records import Plan, Progress, Running, SourceProgress, StageSummary, TaskSummary
from ledgerops.signals.memo import kept

WINDOW_SECONDS = 60.0  # over which rates are computed
MIN_RECENT = 3  # batches for that, however long ago they began


class Run:
    """The current run of a history at `now`. Reads only; make a new one when either changes."""

    def __init__(self, history: History, now: float) -> None:
        self.history = history
        self.now = now

    @kept
    def batches(self) -> Sequence[Progress]:
        """The remembered batches of the current run, oldest first."""
        return list(self.history.run)

    @kept
    def last(self) -> Progress | None:
        """The newest batch of the run; None before the first."""
        return self.history.last if self.batches else None

    @property
    def sources(self) -> Sequence[SourceProgress]:
        """Those of the newest batch; none before the first."""
        return self.last.sources if self.last is not None else ()

    @kept
    def plan(self) -> Plan:
        """What is known of the run's plan; all unknown when the plan was not read."""
        plan = self.history.plan
        return plan if plan is not None and plan.run_id == self.history.run_id else Plan(self.history.run_id or "")

    @kept
    def recent(self) -> Sequence[Progress]:
        """The batches that began in the last minute, at least the last three if there are so many."""
        first = bisect_left(self.batches, self.now - WINDOW_SECONDS, key=lambda batch: batch.started)
        return self.batches[min(first, max(0, len(self.batches) - MIN_RECENT)) :]

    @property
    def is_idle(self) -> bool:
        """Whether Spark reports that there is nothing to read."""
        return self.history.idle_since is not None

    @property
    def rests(self) -> bool:
        """Whether there is nothing to read and no batch runs, not even one that only cleans up state."""
        return self.is_idle and self.history.running is None

    @kept
    def running_seconds(self) -> float | None:
        """How long the present batch has been running, as the watchdog saw it; None when none runs."""
        running = self.history.running
        return max(0.0, self.now - running.since) if running else None

    @property
    def unfinished(self) -> Running | None:
        """The batch that runs, or ran when the run ended; None without one."""
        return self.history.running or self.history.interrupted

    @kept
    def unfinished_seconds(self) -> float | None:
        """Seconds that the unfinished batch has been running, or had been when the run ended; None without one."""
        batch, ended = self.unfinished, self.history.ended
        return None if batch is None else max(0.0, (ended.at if ended is not None else self.now) - batch.since)

    @kept
    def stateful(self) -> bool:
        """Whether the run keeps state, by its plan or by the operators of its last batch."""
        return bool(self.plan.stateful) or bool(self.last and self.last.operators)

    @kept
    def tasks(self) -> TaskSummary | None:
        """The stages of the newest batch whose tasks were read, of the current run."""
        for summary in reversed(self.history.tasks):
            if summary.run_id == self.history.run_id:
                return summary
        return None

    @kept
    def widest_stage(self) -> StageSummary | None:
        """The stage with most task time among those with several tasks: where skew costs most."""
        stages = [stage for stage in self.tasks.stages if stage.tasks > 1] if self.tasks else []
        return max(stages, key=lambda stage: stage.run_seconds, default=None)
