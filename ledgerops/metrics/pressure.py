"""Pressure: arrival against capacity, backlog, lag, and the time until unread records are deleted."""

from collections.abc import Mapping
from typing import cast

from ledgerops.metrics.model import Metric, Series, known
from ledgerops.model.records import Partition
from ledgerops.signals.query_view import QueryView


def _of_partitions(values: Mapping[Partition, float]) -> Series:
    """The same mapping: a (topic, partition) pair is already a tuple of labels, and copying hundreds would be slow."""
    return cast("Series", values)


def _unread_headroom(view: QueryView) -> Series:
    unread = view.lag.unread
    left = [seconds for partition, seconds in view.lag.headroom.items() if unread.get(partition)]
    return known(min([*left, *view.tables.headroom.values()], default=None))


ARRIVAL: Metric[QueryView] = Metric("ledgerops_arrival_rows_per_second",
    "Rows per second that arrive at a source, from the growth of its head offsets: it does not depend on what is read.",
    labels=("source",),
    read=lambda view: {(source,): rate for source, rate in view.rates.arrival_by_source.items()})  # fmt: skip
CAPACITY: Metric[QueryView] = Metric("ledgerops_capacity_rows_per_second",
    "Rows per second that the query can sustain at its trigger interval: by a fit over its batches, or what "
    "it processes while it has no time for more; else absent.",
    read=lambda view: known(view.capacity.sustainable))  # fmt: skip
OVERHEAD: Metric[QueryView] = Metric("ledgerops_batch_overhead_seconds",
    "Fixed cost of a micro-batch by the same fit: the time that a batch takes without any row.",
    read=lambda view: known(view.capacity.overhead))  # fmt: skip
BUSY: Metric[QueryView] = Metric("ledgerops_busy_ratio",
    "Share of the time that micro-batches took, over the last ten; 1 when they run back to back.",
    read=lambda view: known(0.0 if view.run.is_idle else view.trigger.busy_ratio))  # fmt: skip
PRESSURE: Metric[QueryView] = Metric("ledgerops_pressure_ratio",
    "Arrival rate divided by the sustainable rate: above 1 the backlog must grow.",
    read=lambda view: known(view.capacity.pressure_ratio))  # fmt: skip
INTERVAL: Metric[QueryView] = Metric("ledgerops_trigger_interval_seconds",
    "The trigger interval; 0 when batches run back to back. Lag in seconds cannot be finer than this.",
    read=lambda view: known(view.trigger.interval))  # fmt: skip
BACKLOG: Metric[QueryView] = Metric("ledgerops_source_backlog_offsets",
    "Offsets in a source partition that the query has not read yet: as of the start of the newest batch, or of the "
    "last sample of the broker if ledgerops reads it, so that it grows while a long batch runs.",
    labels=("topic", "partition"), read=lambda view: _of_partitions(view.lag.unread))  # fmt: skip
QUERY_BACKLOG: Metric[QueryView] = Metric("ledgerops_query_backlog_offsets",
    "Offsets that the query has not read yet, in all of its source partitions, including those that the series "
    "budget leaves out of ledgerops_source_backlog_offsets.",
    read=lambda view: known(view.lag.unread_offsets), unbudgeted=True)  # fmt: skip
LAG: Metric[QueryView] = Metric("ledgerops_source_lag_seconds",
    "Age of the oldest unread row of a partition: how long ago the last offset that was read was its newest; 0 when "
    "everything was read. A table is one partition: the age of the oldest commit that was not read; so is a source "
    "that reports its lag, such as Kinesis.",
    labels=("topic", "partition"), read=lambda view: _of_partitions(view.unread_since), age=True)  # fmt: skip
QUERY_LAG: Metric[QueryView] = Metric("ledgerops_query_lag_seconds",
    "Lag of the query's worst source partition, including those that the series budget leaves out of "
    "ledgerops_source_lag_seconds.",
    read=lambda view: known(min(view.unread_since.values(), default=None)), age=True, unbudgeted=True)  # fmt: skip
FILES: Metric[QueryView] = Metric("ledgerops_source_batch_files",
    "Files that the newest batch read from a file source; absent where ledgerops cannot read the checkpoint.",
    labels=("source",),
    read=lambda view: {(name,): float(read.files) for name, read in view.lag.newest_files.items()})  # fmt: skip
FILE_AGE: Metric[QueryView] = Metric("ledgerops_source_file_age_seconds",
    "How long before the start of the newest batch the oldest and the newest of its files were last modified. A file "
    "source does not report what it has not read yet: a batch that reads as many files as maxFilesPerTrigger allows, "
    "while the age of its newest file grows, leaves files behind.",
    labels=("source", "kind"), read=lambda view: _of_partitions(view.lag.file_ages))  # fmt: skip
HEADROOM: Metric[QueryView] = Metric("ledgerops_retention_headroom_seconds",
    "Seconds until the broker deletes the oldest record of a partition that is not read yet, by the topic's "
    "retention or by the pace of deletion; 0 when it may be deleted at any moment. A table from which versions were "
    "deleted is one partition: how much younger its oldest unread version is than the oldest that it still has. "
    "Absent when unknown, and where ledgerops asks neither broker nor table.",
    labels=("topic", "partition"),
    read=lambda view: _of_partitions({**view.lag.headroom, **view.tables.headroom}))  # fmt: skip
QUERY_HEADROOM: Metric[QueryView] = Metric("ledgerops_query_retention_headroom_seconds",
    "Smallest retention headroom of the partitions in which the query has something to read, including those that "
    "the series budget leaves out of ledgerops_retention_headroom_seconds. Absent while everything is read.",
    read=_unread_headroom, unbudgeted=True)  # fmt: skip
REACHABLE: Metric[QueryView] = Metric("ledgerops_source_reachable",
    "1 while the broker answers ledgerops, 0 while it does not; absent where ledgerops does not poll it.",
    read=lambda view: {} if view.lag.asked is None else {(): float(view.lag.asked.error is None)})  # fmt: skip
METRICS = (
    ARRIVAL, CAPACITY, OVERHEAD, BUSY, PRESSURE, INTERVAL, BACKLOG, QUERY_BACKLOG, LAG, QUERY_LAG, FILES, FILE_AGE,
    HEADROOM, QUERY_HEADROOM, REACHABLE,
)  # fmt: skip
