"""What a query has not read yet, in offsets, in seconds, and until the source deletes it; and its watermark's lag."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf

from ledgerops.model import head_table
from ledgerops.model.history import backlog
from ledgerops.model.records import LONG_RUNNING, BatchFiles, FilesRead, Heads, Partition, Progress
from ledgerops.signals.memo import kept
from ledgerops.signals.partitions import backlog_by_partition, lowest_offsets
from ledgerops.signals.run import Run
from ledgerops.signals.trigger import ALIGNMENT_SECONDS

LATE_REPORT = 1.5  # batches without a report, after which a query in real-time mode counts as behind
MAX_HEADS_APART = 1_000  # offsets between two readings of one partition within a batch: fewer arrive meanwhile
PACE_BATCHES = 13  # newest batches that tell how fast a backlog falls
SHRINKING_BATCHES = 4  # of which each leaves less than the one before it


def lefts(batches: Sequence[Progress]) -> list[tuple[Progress, int]]:
    """The batches that say what they left in their sources, with the offsets that they left."""
    return [(batch, left) for batch in batches if (left := backlog(batch)) is not None]


class Lag:
    """What one run has left to read at its `now`."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @kept
    def backlog(self) -> int | None:
        """Offsets not read yet, over all partitions, when the last batch began."""
        return backlog(self._run.last) if self._run.last else None

    @kept
    def shrinks(self) -> bool:
        """Whether the backlog fell over each of the latest batches."""
        latest = [left for _, left in lefts(self._run.batches[-SHRINKING_BATCHES:])]
        return len(latest) == SHRINKING_BATCHES and all(later < earlier for earlier, later in pairwise(latest))

    @kept
    def falls_by(self) -> float:
        """Offsets a second by which the backlog fell since it was highest in the latest batches; 0 where it did not."""
        latest = lefts(self._run.batches)[-PACE_BATCHES:]
        if len(latest) < 2:
            return 0.0
        (first, most), (last, left) = max(latest, key=lambda each: each[1]), latest[-1]
        return (most - left) / (last.ended - first.ended) if left < most and last.ended > first.ended else 0.0

    @kept
    def backlog_by_partition(self) -> Mapping[Partition, int]:
        """The same by (topic, partition), none of them negative; empty before the first batch."""
        return backlog_by_partition(self._run.last) if self._run.last else {}

    @kept
    def consumed(self) -> Mapping[Partition, int]:
        """The next offset to read of each partition; where two sources read one, that of the slower."""
        sources = self._run.sources
        return sources[0].end if len(sources) == 1 else lowest_offsets(source.end for source in sources)

    @kept
    def consumed_until(self) -> Mapping[Partition, float]:
        """When each partition's consumed offset was its head: the age of that instant is the lag in seconds. Infinity
        stands for 'nothing left when the last batch began'. The resolution is the trigger interval."""
        found: dict[Partition, float] = {}
        ambiguous = self._ambiguous
        for partition, left in self.backlog_by_partition.items():
            if partition in ambiguous:
                continue
            if left == 0:
                found[partition] = inf
                continue
            assert self._run.last is not None
            slack = ALIGNMENT_SECONDS + self._run.last.phases.get("latest_offset", 0.0)
            at = self._was_head(partition)
            if at is not None:
                # what arrived while the batch was being planned does not count as unread
                found[partition] = inf if at >= head_table.offsets_read_at(self._run.last) - slack else at
        return found

    @kept
    def _ambiguous(self) -> frozenset[Partition]:
        """Partitions that have one name in two sources of the query but are not the same: on two clusters, or from two
        plans of the ledger's own source. Their heads share one table, from which no time can be read then."""
        sources = self._run.sources
        heads: dict[Partition, tuple[int, int]] = {}  # the lowest and the highest of each
        reads: dict[Partition, int] = {}
        for source in sources if len(sources) > 1 else ():
            for partition, head in source.latest.items():
                lowest, highest = heads.get(partition, (head, head))
                heads[partition] = min(lowest, head), max(highest, head)
                read = source.end.get(partition, 0) - source.start.get(partition, 0)
                reads[partition] = max(MAX_HEADS_APART, read, reads.get(partition, 0))
        return frozenset(each for each, (lowest, highest) in heads.items() if highest - lowest > reads[each])

    def _was_head(self, partition: Partition) -> float | None:
        """When the consumed offset of a partition was last its head."""
        heads, times = self._run.history.head_times.get(partition, ((), ()))
        return head_table.time_of_offset(heads, times, self.consumed[partition])

    @kept
    def seconds(self) -> float | None:
        """The largest lag in seconds over all partitions, now: of what `unread_offsets` counts."""
        oldest = min(self.unread_since.values(), default=None)
        return None if oldest is None else max(0.0, self._run.now - oldest)

    @kept
    def asked(self) -> Heads | None:
        """The newest sample of the collector that reads the source itself, answered or not; None without one."""
        return next((heads for heads in reversed(self._run.history.heads) if heads.at <= self._run.now), None)

    @kept
    def heads(self) -> Heads | None:
        """The newest answer of the source itself; None without a collector."""
        answered = (heads for heads in reversed(self._run.history.heads) if heads.error is None)
        return next((heads for heads in answered if heads.at <= self._run.now), None)

    @kept
    def unread(self) -> Mapping[Partition, int]:
        """Offsets not read yet by the newest heads known: those of the last batch, or later ones of the source itself.

        So it grows while a long batch runs; without a collector it is `backlog_by_partition`. And so it is of a query
        in real-time mode until its next report is overdue: it reads all the time, and says only then how far.
        """
        heads, last = self.heads, self._run.last
        if last is None or heads is None or heads.at <= head_table.offsets_read_at(last):
            return self.backlog_by_partition
        plan = self._run.plan
        if plan.trigger in LONG_RUNNING:
            overdue = last.ended + LATE_REPORT * max(plan.trigger_interval or 0.0, last.duration)
            if self._run.now < overdue:
                return self.backlog_by_partition
        latest = heads.latest
        asked = {
            partition: left if (left := latest[partition] - end) > 0 else 0
            for partition, end in self.consumed.items()
            if partition in latest
        }
        return {**self.backlog_by_partition, **asked}

    @kept
    def unread_offsets(self) -> int | None:
        """The same over all partitions; None when no source says how far its head is."""
        return sum(self.unread.values()) if self.unread else None

    @kept
    def unread_since(self) -> Mapping[Partition, float]:
        """`consumed_until` by the newest heads known; infinity where nothing is left."""
        if self.unread is self.backlog_by_partition:
            return self.consumed_until
        return {
            partition: at
            for partition, left in self.unread.items()
            if (at := inf if left == 0 else self._was_head(partition)) is not None
        }

    @kept
    def headroom(self) -> Mapping[Partition, float]:
        """Seconds until the oldest unread record of each partition is deleted; 0 where it is gone already.

        The smaller of two: the topic's retention less the age of that record, and the records before it over the rate
        at which the partition's beginning advances. Where all is read it is the whole retention. A partition of which
        neither can be known is absent, and so are all without a collector.
        """
        heads, unread = self.heads, self.unread
        found: dict[Partition, float] = {}
        if heads is None:
            return found
        oldest, retention = heads.earliest, heads.retention_seconds
        for partition, end in self.consumed.items():
            earliest, left = oldest.get(partition), unread.get(partition)
            if earliest is None or left is None:
                continue
            if end < earliest:
                found[partition] = 0.0
                continue
            keeps = retention.get(partition[0])
            if left == 0:
                if keeps is not None:
                    found[partition] = keeps
                continue
            limits = []
            known = self._run.history.head_times.get(partition)
            since = self._was_head(partition)
            if keeps is not None and since is not None and known and known[0][0] <= end:
                limits.append(max(0.0, keeps - (self._run.now - since)))
            offsets, times = self._run.history.earliest_times.get(partition, ((), ()))
            rate = head_table.advance(offsets, times, self._run.now)
            if rate is not None:
                limits.append((end - earliest) / rate)
            if limits:
                found[partition] = min(limits)
        return found

    @kept
    def files(self) -> Sequence[tuple[Progress, BatchFiles]]:
        """The batches of the run whose files are known, with these, oldest first."""
        if not self._run.history.files:
            return ()
        known = {each.batch_id: each for each in self._run.history.files if each.run_id == self._run.history.run_id}
        return [(batch, known[batch.batch_id]) for batch in self._run.batches if batch.batch_id in known]

    @kept
    def newest_files(self) -> Mapping[str, FilesRead]:
        """What the newest of these batches read, by source; empty where none is known."""
        return self.files[-1][1].sources if self.files else {}

    @kept
    def file_ages(self) -> Mapping[tuple[str, str], float]:
        """By (source, "oldest" or "newest"): seconds from that file's modification to the start of the same batch.

        0 for one that came while the batch was being planned. A file that is newer than the end of the batch that
        read it has a clock of its own: its source is absent.
        """
        found: dict[tuple[str, str], float] = {}
        for name, read in self.newest_files.items():
            batch = self.files[-1][0]
            if read.newest <= batch.ended:
                found[name, "oldest"] = max(0.0, batch.started - read.oldest)
                found[name, "newest"] = max(0.0, batch.started - read.newest)
        return found

    @kept
    def watermark(self) -> float | None:
        """Seconds from the watermark to now: grows while the query is stuck or its input is old."""
        last = self._run.last
        return None if last is None or last.watermark is None else max(0.0, self._run.now - last.watermark)
