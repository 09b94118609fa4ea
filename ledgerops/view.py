"""One query at one moment: the signals that metrics, rules and displays read, each computed at most once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from ledgerops import signals
from ledgerops.history import History, backlog
from ledgerops.records import (
    LONG_RUNNING,
    Executor,
    Heads,
    Host,
    Observer,
    Partition,
    Plan,
    Progress,
    StageSummary,
    TaskSummary,
)
from ledgerops.signals import Capacity

WINDOW = 60.0  # seconds over which rates are taken
FRESHNESS = 60.0  # seconds that results may be old, unless the configuration says otherwise
FIT_BATCHES = 60  # the fit looks back this many batches: older ones saw another load
SATURATED = 0.9  # busy above this counts as saturated: batches run nearly back to back
BUSY_BATCHES = 10
ALIGNED = 0.06  # Spark starts a processing-time trigger on multiples of its interval, at most this late when idle
WARM_UP = 10.0  # seconds: six queries that start together on two cores need this long until their batches settle
LEFT = 0.1  # share of a batch's rows that must be left over to speak of a backlog
SETTLED = 1  # the first batch of a run pays for planning and warm-up and says nothing about the rest


OBSERVATION = "ledgerops"  # the name under which `instrument` observes


class HotKey(NamedTuple):
    """The most frequent key of a batch: hashed unless `instrument` was asked for plain keys."""

    key: str
    share: float  # of the rows that have a key, 0 to 1
    rows: int


class View:
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
        self.hosts = hosts  # oldest first
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
    def stateful(self) -> bool:
        return bool(self.plan.stateful) or bool(self.last and self.last.operators)

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

    @cached_property
    def usual_duration(self) -> float | None:
        """Median batch duration in seconds over the settled batches; None before three of them."""
        durations = [batch.duration for batch in self.settled]
        return median(durations) if len(durations) >= 3 else None

    @cached_property
    def recent(self) -> Sequence[Progress]:
        """The batches that began in the last minute, at least the last three if there are so many."""
        fresh = [batch for batch in self.batches if batch.started >= self.now - WINDOW]
        return fresh if len(fresh) >= 3 else self.batches[-3:]

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
    def backlog(self) -> int | None:
        """Offsets not read yet, over all partitions, when the last batch began."""
        return backlog(self.last) if self.last else None

    @cached_property
    def backlog_by_partition(self) -> Mapping[Partition, int]:
        return signals.backlog_by_partition(self.last) if self.last else {}

    @cached_property
    def backlog_slope(self) -> float | None:
        """Offsets a second by which the backlog grew over the last minute; negative while it shrinks."""
        fresh = [batch for batch in self.batches[-FIT_BATCHES:] if batch.ended >= self.now - WINDOW]
        return signals.slope([(batch.ended, left) for batch in fresh if (left := backlog(batch)) is not None])

    @cached_property
    def rows_per_offset(self) -> Mapping[str, float]:
        return signals.rows_per_offset(self.batches[-FIT_BATCHES:])

    @cached_property
    def arrival_by_source(self) -> Mapping[str, float]:
        """Rows a second that arrive at each source, by the growth of its heads: consumption cannot hide it."""
        if self.last is not None and self.history.idle_since is not None:
            return {source.name: 0.0 for source in self.last.sources if source.latest}
        if len(self.recent) < 2:
            return {}
        first, final = self.recent[0], self.recent[-1]
        span = final.started - first.started
        if span <= 0:
            return {}
        heads = {source.name: source.latest for source in first.sources}
        return {
            source.name: signals.growth(heads[source.name], source.latest)
            / span
            * self.rows_per_offset.get(source.name, 1.0)
            for source in final.sources
            if source.latest and heads.get(source.name)
        }

    @cached_property
    def arrival(self) -> float | None:
        """Rows a second that arrive, over all sources that report their heads."""
        return sum(self.arrival_by_source.values()) if self.arrival_by_source else None

    @cached_property
    def input_rate_by_source(self) -> Mapping[str, float]:
        """Rows a second of wall time read from each source over the last minute; 0 when idle."""
        if self.last is None:
            return {}
        if self.history.idle_since is not None:
            return {source.name: 0.0 for source in self.last.sources}
        if len(self.recent) < 2:
            return {}
        span = self.recent[-1].started - self.recent[0].started
        rows: dict[str, int] = {}
        for batch in self.recent[1:]:  # a batch reads what came since the one before it began
            for source in batch.sources:
                rows[source.name] = rows.get(source.name, 0) + source.rows
        return {name: count / span for name, count in rows.items()} if span > 0 else {}

    @cached_property
    def processed_rate(self) -> float | None:
        """Rows a second of batch time over the last minute: what the query works off while it works."""
        seconds = sum(batch.duration for batch in self.recent)
        return sum(batch.rows for batch in self.recent) / seconds if seconds > 0 else None

    @cached_property
    def capacity(self) -> Capacity:
        """The fit of batch time over rows; when saturated, what was really worked off stands in for a fit.

        What the query has just worked off it can work off: no fit gives less.
        """
        batches = [batch for batch in self.steady[-FIT_BATCHES:] if batch.rows > 0]
        interval = self.trigger_interval
        fitted = signals.fit_capacity([b.rows for b in batches], [b.duration for b in batches])
        if not isinstance(fitted, str):
            overhead, rate = fitted
            newest = batches[-BUSY_BATCHES:]
            shown = sum(each.rows for each in newest) / sum(max(each.duration, interval or 0.0) for each in newest)
            sustainable = max(shown, rate * max(0.0, 1 - overhead / interval) if interval else rate)
            return Capacity(overhead, rate, sustainable, len(batches), "fitted")
        saturated = [batch for batch in batches[-BUSY_BATCHES:] if batch.duration >= SATURATED * (interval or 0.0)]
        left = (self.backlog or 0) * min(self.rows_per_offset.values(), default=1.0)
        if (self.busy_ratio or 0.0) >= SATURATED and len(saturated) >= 3 and left >= LEFT * batches[-1].rows:
            observed = sum(batch.rows for batch in saturated) / sum(batch.duration for batch in saturated)
            return Capacity(None, None, observed, len(saturated), "observed while saturated")
        return Capacity(None, None, None, len(batches), fitted)

    @cached_property
    def pressure_ratio(self) -> float | None:
        """Arrival over sustainable capacity: above 1 the backlog must grow."""
        sustainable = self.capacity.sustainable
        return self.arrival / sustainable if self.arrival is not None and sustainable else None

    @cached_property
    def drain_seconds(self) -> float | None:
        """Seconds until the backlog is gone at the present rates; None when unknown or never."""
        left, sustainable = self.backlog, self.capacity.sustainable
        if left is None or self.arrival is None or sustainable is None:
            return None
        if left == 0:
            return 0.0
        spare = sustainable - self.arrival
        factor = min(self.rows_per_offset.values(), default=1.0)
        return left * factor / spare if spare > 0 else None

    @cached_property
    def consumed_until(self) -> Mapping[Partition, float]:
        """When each partition's consumed offset was its head: the age of that instant is the lag in seconds.

        Infinity stands for 'nothing left when the last batch began'. The resolution is the trigger interval.
        """
        found: dict[Partition, float] = {}
        for partition, left in self.backlog_by_partition.items():
            if left == 0:
                found[partition] = float("inf")
                continue
            assert self.last is not None
            slack = ALIGNED + self.last.phases.get("latest_offset", 0.0)
            at = self._was_head(partition)
            if at is not None:
                # what came in while the batch was being planned was not left behind
                found[partition] = float("inf") if at >= signals.looked_at(self.last) - slack else at
        return found

    def _was_head(self, partition: Partition) -> float | None:
        """When the consumed offset of a partition was last its head."""
        heads, times = self.history.head_times.get(partition, ((), ()))
        return signals.time_of_offset(heads, times, self.consumed[partition])

    @cached_property
    def consumed(self) -> Mapping[Partition, int]:
        """The next offset to read of each partition; where two sources read one, that of the slower."""
        if self.last is not None and len(self.last.sources) == 1:
            return self.last.sources[0].end
        found: dict[Partition, int] = {}
        for source in self.last.sources if self.last else ():
            for partition, end in source.end.items():
                found[partition] = min(end, found.get(partition, end))
        return found

    @cached_property
    def asked(self) -> Heads | None:
        """The newest look of the collector that asks the source itself, answered or not; None without one."""
        return next((heads for heads in reversed(self.history.heads) if heads.at <= self.now), None)

    @cached_property
    def heads(self) -> Heads | None:
        """The newest answer of the source itself; None without a collector."""
        known = (heads for heads in reversed(self.history.heads) if heads.at <= self.now and heads.error is None)
        return next(known, None)

    @cached_property
    def unread(self) -> Mapping[Partition, int]:
        """Offsets not read yet by the newest heads known: those of the last batch, or later ones of the source itself.

        So it grows while a long batch runs; without a collector it is `backlog_by_partition`.
        """
        heads = self.heads
        if self.last is None or heads is None or heads.at <= signals.looked_at(self.last):
            return self.backlog_by_partition
        asked = {
            partition: max(0, heads.latest[partition] - end)
            for partition, end in self.consumed.items()
            if partition in heads.latest
        }
        return {**self.backlog_by_partition, **asked}

    @cached_property
    def unread_offsets(self) -> int | None:
        """The same over all partitions; None when no source says how far its head is."""
        return sum(self.unread.values()) if self.unread else None

    @cached_property
    def unread_since(self) -> Mapping[Partition, float]:
        """`consumed_until` by the newest heads known; infinity where nothing is left."""
        if self.unread is self.backlog_by_partition:
            return self.consumed_until
        found = {p: float("inf") if left == 0 else self._was_head(p) for p, left in self.unread.items()}
        return {partition: at for partition, at in found.items() if at is not None}

    @cached_property
    def headroom(self) -> Mapping[Partition, float]:
        """Seconds until the oldest unread record of each partition is deleted; 0 where it is gone already.

        The smaller of two: the topic's retention less the age of that record, and the records before it over the rate
        at which the partition's beginning advances. Where all is read it is the whole retention. A partition of which
        neither can be known is absent, and so are all without a collector.
        """
        heads = self.heads
        found: dict[Partition, float] = {}
        if heads is None:
            return found
        for partition, end in self.consumed.items():
            earliest, left = heads.earliest.get(partition), self.unread.get(partition)
            if earliest is None or left is None:
                continue
            if end < earliest:
                found[partition] = 0.0
                continue
            keeps = heads.retention_seconds.get(partition[0])
            if left == 0:
                if keeps is not None:
                    found[partition] = keeps
                continue
            limits = []
            known = self.history.head_times.get(partition)
            since = self._was_head(partition)
            if keeps is not None and since is not None and known and known[0][0] <= end:
                limits.append(max(0.0, keeps - (self.now - since)))
            offsets, times = self.history.earliest_times.get(partition, ((), ()))
            rate = signals.advance(offsets, times, self.now)
            if rate is not None:
                limits.append((end - earliest) / rate)
            if limits:
                found[partition] = min(limits)
        return found

    @cached_property
    def lag_seconds(self) -> float | None:
        """The largest lag in seconds over all partitions, now."""
        oldest = min(self.consumed_until.values(), default=None)
        return None if oldest is None else max(0.0, self.now - oldest)

    @cached_property
    def watermark_lag(self) -> float | None:
        """Now minus the watermark: grows while the query is stuck or its input is old."""
        if self.last is None or self.last.watermark is None:
            return None
        return max(0.0, self.now - self.last.watermark)

    @cached_property
    def running_seconds(self) -> float | None:
        """How long the present trigger has been at work, as the watchdog saw it; None when nothing runs."""
        running = self.history.running
        return max(0.0, self.now - running.since) if running else None

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

    @cached_property
    def hot_keys(self) -> Sequence[HotKey]:
        """The hottest key of each of the newest batches that observed keys, newest first; needs `instrument`."""
        return [hot for batch in reversed(self.batches[-5:]) if (hot := hottest_key(batch)) is not None]

    @cached_property
    def hot_key(self) -> HotKey | None:
        """The hottest key of the newest batch that observed keys; None without `ledgerops.instrument`."""
        return self.hot_keys[0] if self.hot_keys else None

    @cached_property
    def key_column(self) -> str | None:
        """The column that `instrument` observes as the key; None where it does not say."""
        for batch in reversed(self.batches[-5:]):
            for name, row in batch.observed.items():
                if name.startswith(OBSERVATION) and isinstance(column := row.get("key"), str):
                    return column
        return None

    @cached_property
    def skew(self) -> Mapping[str, tuple[float | None, float | None]]:
        """(max / median, FLIP-418 score) by kind, of the latest batch: lifetime totals would hide it."""
        found: dict[str, tuple[float | None, float | None]] = {}
        if self.last is not None:
            read = list(signals.read_by_partition(self.last).values())
            if len(read) > 1:
                found["source_partition"] = (signals.skew_ratio(read), signals.skew_score(read))
        stage = self.widest_stage
        if stage is not None:
            if stage.records_median > 0:
                found["task_records"] = (signals.ratio(stage.records_max, stage.records_median), stage.records_score)
            if stage.seconds_median > 0:
                found["task_time"] = (signals.ratio(stage.seconds_max, stage.seconds_median), stage.seconds_score)
            if len(stage.executors) > 1:
                shares = [share.run_seconds for share in stage.executors.values()]
                found["executor"] = (signals.skew_ratio(shares), signals.skew_score(shares))
        return found


def hottest_key(batch: Progress) -> HotKey | None:
    """The key with the largest share of the rows that a batch observed."""
    found = [
        HotKey(str(top[0].get("item")), top[0]["count"] / rows, int(top[0]["count"]))
        for name, row in batch.observed.items()
        if name.startswith(OBSERVATION)
        and isinstance(rows := row.get("rows"), int)
        and rows > 0
        and isinstance(top := row.get("hot_keys"), list)
        and top
        and isinstance(top[0], dict)
        and isinstance(top[0].get("count"), int)
    ]
    return max(found, key=lambda hot: hot.share, default=None)
