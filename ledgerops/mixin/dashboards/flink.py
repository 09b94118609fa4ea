"""Where somebody who comes from Flink finds a signal: the 143 panels of three dashboards, and ours that say the same.

The dashboards are those that come with a Flink training project: applications (42 panels), job and task managers (89),
Kafka (12). Panels that show one signal several times, as a delta and as a rate, as a figure and as a line, or split by
buffer, stand in one line here.
"""

from __future__ import annotations

from dataclasses import dataclass

APPLICATIONS, MANAGERS, KAFKA = "Applications", "Job and task managers", "Kafka"


@dataclass(frozen=True, slots=True)
class Signal:
    """`count` panels of a Flink dashboard, and the panels of ours, as `page/title`, that say the same on Spark."""

    board: str
    flink: str
    count: int
    ours: tuple[str, ...] = ()
    note: str = ""  # what is different; of a signal without a panel: why there is none


RUN = ("query/Up for",)
RESTARTS = ("query/Restarts in the last hour", "query/Status")
BATCHES = ("query/Batches", "query/Batch running now", "query/Failures since the driver began")
COMMITS = ("query/Batch time by phase", "state/Task time on state", "state/Commit time by part")
CPU = ("resources/CPU by process", "resources/Busy")
MEMORY = ("resources/Memory by process", "resources/Heap peak", "resources/Storage memory")
COLLECTION = ("resources/Garbage collection",)
NO_BUFFERS = "Shuffles of Spark are written whole and then read: there are no network buffers, credits or queues."
NOT_EXPORTED = "Spark's state store does not tell it."
NO_BARRIERS = "There are no barriers to align; what a stage waits for is its slowest task."

SIGNALS: tuple[Signal, ...] = (
    Signal(APPLICATIONS, "Current Uptime", 1, RUN),
    Signal(APPLICATIONS, "Restarts", 1, RESTARTS, "The same query id with a new run id."),
    Signal(APPLICATIONS, "Completed, pending, failed checkpoints", 3, BATCHES, "Each batch commits once."),
    Signal(APPLICATIONS, "Event time lag, 99% quantile", 1, ("query/Event latency percentiles",)),
    Signal(
        APPLICATIONS,
        "Event time lag per operator and per subtask",
        2,
        ("query/Lag by partition",),
        "All operators share one batch; source partitions differ.",
    ),
    Signal(
        APPLICATIONS,
        "Output watermark; processing time minus event time",
        2,
        ("query/Watermark lag",),
        "A query has one watermark, not one a task.",
    ),
    Signal(APPLICATIONS, "Source throughput", 1, ("query/Arrival, input and capacity", "fleet/Rows read")),
    Signal(APPLICATIONS, "Records out per task", 1, ("query/Rows out", "state/Rows updated and removed")),
    Signal(APPLICATIONS, "Records out per subtask", 1, ("skew/Largest over median", "skew/Skew score (FLIP-418)")),
    Signal(APPLICATIONS, "Checkpoint duration", 1, COMMITS),
    Signal(APPLICATIONS, "Checkpoint size", 1, ("state/Uploads", "state/Files of snapshots")),
    Signal(APPLICATIONS, "Checkpoint alignment time", 1, ("skew/Largest over median",), NO_BARRIERS),
    Signal(
        APPLICATIONS,
        "RocksDB: live data",
        1,
        ("state/Size of SST files", "state/Memory of the HDFS-backed store"),
        "All SST files, without an estimate of what of them is live.",
    ),
    Signal(
        APPLICATIONS,
        "RocksDB: delayed write rate, write stopped, running compactions, pending compaction bytes",
        4,
        ("state/Writer stall and compaction", "state/Compaction"),
        "The time of stalls and compactions and the bytes moved, not what is pending.",
    ),
    Signal(APPLICATIONS, "RocksDB: running flushes", 1, ("state/Bytes read and written", "state/Commit time by part")),
    Signal(
        APPLICATIONS, "RocksDB: block cache usage, pinned usage", 2, ("state/Block cache hits", "state/Pinned blocks")
    ),
    Signal(APPLICATIONS, "RocksDB: memtable size, readers' memory", 2, ("state/State memory",), "Told in one sum."),
    Signal(
        APPLICATIONS,
        "RocksDB: entries and deletes of the active memtable",
        2,
        ("state/State rows", "state/Rows updated and removed"),
        "Rows of the state instead of entries of a memtable.",
    ),
    Signal(
        APPLICATIONS,
        "RocksDB: background errors, pending compactions and flushes, live versions, unreleased snapshots, immutable "
        "memtables",
        7,
        note=f"{NOT_EXPORTED} A background error fails the task, and so the batch.",
    ),
    Signal(APPLICATIONS, "Task managers: CPU", 1, CPU),
    Signal(APPLICATIONS, "Task managers: memory, and its details", 2, MEMORY),
    Signal(APPLICATIONS, "Task managers: GC", 1, COLLECTION, "All collectors of a JVM together."),
    Signal(APPLICATIONS, "Job manager: CPU", 1, CPU, "The driver's Python, JVM and Python workers apart."),
    Signal(APPLICATIONS, "Job manager: memory", 1, MEMORY),
    Signal(APPLICATIONS, "Job manager: GC", 1, COLLECTION, "Of the executor `driver`."),
    Signal(MANAGERS, "Job manager: load, time", 2, CPU),
    Signal(MANAGERS, "Job manager: threads", 1, ("resources/Threads", "resources/Open files")),
    Signal(
        MANAGERS,
        "Job manager: heap, non-heap, direct, mapped, metaspace",
        5,
        MEMORY,
        "Resident memory holds all pools; apart they are on Spark's own /metrics/prometheus.",
    ),
    Signal(MANAGERS, "Job manager: mark-sweep and scavenge time", 2, COLLECTION, "All collectors of a JVM together."),
    Signal(MANAGERS, "Task managers", 1, ("resources/Active",)),
    Signal(MANAGERS, "Task slots, available slots", 2, ("resources/Active tasks",)),
    Signal(MANAGERS, "Running jobs", 1, ("fleet/Queries running", "fleet/Expected and not running", "fleet/Ended")),
    Signal(MANAGERS, "Job restarts, full restarts, restarting time", 3, RESTARTS),
    Signal(MANAGERS, "Job uptime", 1, RUN),
    Signal(MANAGERS, "Checkpoints: all, completed, in progress, failed", 4, BATCHES),
    Signal(MANAGERS, "Last checkpoint: size, duration", 2, (*COMMITS, "state/Uploads", "state/Snapshot lag")),
    Signal(MANAGERS, "(untitled)", 1, note="It asks for a metric `xx`, which Flink does not have."),
    Signal(MANAGERS, "Task managers: load, time", 2, CPU),
    Signal(
        MANAGERS,
        "Task managers: threads",
        1,
        ("resources/Threads",),
        "Of the driver's machine; other executors do not tell theirs.",
    ),
    Signal(
        MANAGERS,
        "Task managers: heap, non-heap, direct, mapped, metaspace",
        5,
        MEMORY,
        "The peak of the heap by executor; other pools are on Spark's own /metrics/executors/prometheus.",
    ),
    Signal(
        MANAGERS, "Task managers: young and old generation time", 2, COLLECTION, "All collectors of a JVM together."
    ),
    Signal(
        MANAGERS,
        "Managed memory",
        1,
        ("resources/Storage memory", "state/State memory"),
        "RocksDB is outside of Spark's.",
    ),
    Signal(MANAGERS, "Shuffle Netty: memory and its segments", 6, note=NO_BUFFERS),
    Signal(
        MANAGERS,
        "Is back pressured",
        1,
        ("query/Pressure and busy", "query/Backlog by partition", "fleet/Pressure"),
        "No stage of Spark holds up the one before it: what cannot be worked off piles up at the source.",
    ),
    Signal(MANAGERS, "Idle time", 1, ("query/Pressure and busy", "fleet/Busy"), "Idle is 1 minus busy."),
    Signal(
        MANAGERS,
        "Checkpoint start delay, alignment",
        2,
        ("query/Batch time percentiles", "skew/Largest over median"),
        NO_BARRIERS,
    ),
    Signal(MANAGERS, "Buffers in local, remote, out", 6, note=NO_BUFFERS),
    Signal(
        MANAGERS,
        "Bytes in, in local, in remote, out",
        8,
        ("resources/Shuffle",),
        "By executor; local and remote together.",
    ),
    Signal(
        MANAGERS,
        "Records in, records out",
        4,
        ("query/Arrival, input and capacity", "query/Rows out", "kafka/Read"),
    ),
    Signal(MANAGERS, "Buffer pools and queues", 6, note=NO_BUFFERS),
    Signal(
        MANAGERS,
        "Late records dropped",
        1,
        ("query/Rows dropped as late",),
        "For aggregations a lower bound: counted after partial aggregation.",
    ),
    Signal(
        MANAGERS,
        "Records in and out of an operator",
        4,
        ("state/Rows updated and removed", "state/State rows"),
        "Of operators with state; other operators run as one stage and are not told apart.",
    ),
    Signal(MANAGERS, "Shuffle Netty: queues and pools", 6, note=NO_BUFFERS),
    Signal(MANAGERS, "Shuffle Netty: input buffers in local, in remote", 4, note=NO_BUFFERS),
    Signal(MANAGERS, "Shuffle Netty: input bytes in local, in remote", 4, ("resources/Shuffle",)),
    Signal(
        KAFKA,
        "Time between polls, maximum and average",
        2,
        ("query/Batches", "query/Time since the last sign of life"),
        "There is no poll loop: the source is asked once a batch.",
    ),
    Signal(
        KAFKA,
        "Commit latency, commit sync time",
        2,
        ("query/Batch time by phase",),
        "Phase commit_offsets: Spark commits to its checkpoint, not to Kafka.",
    ),
    Signal(KAFKA, "Commits succeeded, failed", 2, ("query/Batches", "query/Failures since the driver began")),
    Signal(
        KAFKA, "Rebalance rate, sync total", 2, note="Spark assigns partitions itself: there is no group to balance."
    ),
    Signal(
        KAFKA,
        "Topic partition current offset",
        1,
        ("query/Backlog by partition", "kafka/Backlog", "kafka/Lag"),
        "The distance to the head instead of the offset itself.",
    ),
    Signal(KAFKA, "Partitions per task", 1, ("skew/Backlog by partition",), "All partitions, each by itself."),
    Signal(KAFKA, "Connections count", 1, note="Executors' Kafka clients tell it over JMX only."),
    Signal(KAFKA, "Bytes consumed rate", 1, ("kafka/Read",), "In rows: Spark counts no bytes of Kafka."),
)
