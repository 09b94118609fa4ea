"""State commit slow: saving the state takes most of a batch, or most of its extra time.

Meaning: after its rows are processed, a batch saves the changes of its state for each partition: RocksDB flushes and
    uploads files or a changelog, the HDFS-backed store writes a delta file. This now takes a large part of the batch.
Impact: batches outlast the trigger interval although few rows arrive and the tasks hardly compute.
Diagnosis: 1. `rate(ledgerops_state_commit_seconds_total{app="APP",query="QUERY"}[5m])` is in task seconds: divide it by
    the number of tasks that run at once. If the result is a small part of the batch, saving the state is no longer the
    cause.
    2. For RocksDB compare `rate(ledgerops_rocksdb_commit_file_sync_seconds_total{app="APP",query="QUERY"}[5m])` (the
    upload to the checkpoint) with `rate(ledgerops_rocksdb_commit_flush_seconds_total{app="APP",query="QUERY"}[5m])` and
    `rate(ledgerops_rocksdb_commit_compact_seconds_total{app="APP",query="QUERY"}[5m])` (the local disk). The larger one
    names the slow storage.
    3. Time the writing of a file of 1 MB to the checkpoint folder. If it is fast, there are too many state partitions:
    see `too-many-tasks`.
Mitigation: stop other work that loads that storage. At the next restart of a query with RocksDB, set
    `spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled` and leave `compactOnCommit` off. Then move
    the checkpoint, while the query is stopped, to faster storage that all executors share. Fewer state partitions make
    fewer files, but the checkpoint fixes their number.
"""

from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.state_cost import off_heap
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Remedy, Setting
from ledgerops.signals.query_view import QueryView

CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
PLACE = first_step(
    "state-commit-slow", GENERAL, "each batch waits until its state is saved there; more cores do not help"
)
ONLY_CHANGES = Remedy(
    f"set {CHANGELOG}=true, leave compactOnCommit off, and restart",
    "a batch then saves only its changes, and full snapshots are uploaded in the background",
    command=f'spark.conf.set("{CHANGELOG}", "true")',
    settings=(Setting(CHANGELOG, "true"),),
)


def _tell(view: QueryView, found: Profile) -> Told:
    # the time of a writer that exists only where each batch saves its changes
    saves_changes = any(each.custom.get("rocksdbChangeLogWriterCommitLatencyMs") for each in view.operators)
    slowest = max(view.operators, key=lambda each: each.commit_seconds, default=None)
    component = Component("operator", slowest.name if slowest is not None else "state")
    return Told(component, (PLACE, ONLY_CHANGES) if off_heap(view) and not saves_changes else (PLACE,))


CAUSE = Cause(
    slug="state-commit-slow",
    runbook=__doc__,
    parts=("state_commit",),
    happened="saving the state takes {seconds} of a batch of {batch}",
    tell=_tell,
)
