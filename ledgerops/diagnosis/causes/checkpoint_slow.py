"""Checkpoint slow: writing the checkpoint takes a large part of each batch.

Meaning: Spark writes a small file with the offsets before each batch (`wal_commit`) and another one after it
    (`commit_offsets`). These writes take much longer than they should, or than they used to.
Impact: every batch takes longer, however few rows it has, so batches outlast the trigger interval. The state store and
    file sinks often write to the same storage and slow down as well.
Diagnosis: 1. `sum by (phase)
    (rate(ledgerops_batch_phase_seconds_total{app="APP",query="QUERY",phase=~"wal_commit|commit_offsets"}[5m]))` divided
    by `scalar(sum(rate(ledgerops_batches_total{app="APP",query="QUERY"}[5m])))` gives the seconds of each write. Well
    above 0.5 s means that the storage is slow.
    2. Time the writing of a small file to the checkpoint folder by hand. If it is slow too, the storage is the cause:
    on an object store check for throttling, on HDFS check the name node, on a disk check its queue (`iostat -x`). If it
    is fast, the driver is: look for garbage collection and a busy CPU there.
    3. Check whether other queries have the same finding. If they do, they share the storage and its limits.
Mitigation: make the trigger interval longer if results may be that old: fewer batches write fewer files. Then move the
    checkpoint, while the query is stopped, to storage with low latency that all executors share (HDFS or NFS rather
    than an object store), raise its rate limit, or clear a full disk. For a stateless query with a Kafka sink,
    `asyncProgressTrackingEnabled` writes the offsets in parallel with the batch. More cores do not help.
"""

from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.longer_interval import longer_interval
from ledgerops.diagnosis.rule import LATE
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component

STORAGE = first_step("checkpoint-slow", GENERAL, "two small files are written for each batch; more cores do not help")

CAUSE = Cause(
    slug="checkpoint-slow",
    runbook=__doc__,
    parts=("wal_commit", "commit_offsets"),
    normal=0.5,  # an object store takes 0.1 to 0.3 s for each of the two files, a busy disk 0.7 s for both
    happened="{seconds} of a batch of {batch} pass writing the checkpoint",
    explains=(*LATE, "small-batch-overhead", "state-commit-slow"),
    tell=lambda view, found: Told(
        Component("query", view.query, "checkpoint"),
        (STORAGE, *longer_interval(view, found.duration, "fewer batches write fewer files")),
    ),
)
