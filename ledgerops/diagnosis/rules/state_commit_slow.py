"""State commit slow: saving the state takes most of a batch, or most of its extra time.

Meaning: after its rows are processed, a batch saves the changes of its state for each partition: RocksDB flushes and
    uploads files or a changelog, the HDFS-backed store writes a delta file. This now takes a large part of the batch.
Impact: batches outlast the trigger interval although few rows arrive and the tasks hardly compute.
Diagnosis: 1. `rate(ledgerops_state_commit_seconds_total{query="QUERY"}[5m])` is in task seconds: divide it by the
    number of tasks that run at once. If the result is a small part of the batch, saving the state is no longer the
    cause.
    2. For RocksDB compare `rate(ledgerops_rocksdb_commit_file_sync_seconds_total{query="QUERY"}[5m])` (the upload to
    the checkpoint) with `rate(ledgerops_rocksdb_commit_flush_seconds_total{query="QUERY"}[5m])` and
    `rate(ledgerops_rocksdb_commit_compact_seconds_total{query="QUERY"}[5m])` (the local disk). The larger one names the
    slow storage.
    3. Time the writing of a file of 1 MB to the checkpoint folder. If it is fast, there are too many state partitions:
    see `too-many-tasks`.
Mitigation: stop other work that loads that storage. At the next restart of a query with RocksDB, set
    `spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled` and leave `compactOnCommit` off. Then move
    the checkpoint to a faster file system (local or regional, not remote). Fewer state partitions make fewer files, but
    the checkpoint fixes their number.
Evidence:
    state_commit_wall_seconds: median over the latest 3 batches, without those of the first 10 s of the run, of the sum
        of commitTimeMs / 1000 / min(numShufflePartitions, cores of the active executors) over stateOperators
    state_commit_share: that sum divided by the median of durationMs.triggerExecution / 1000 of these batches
    usual_state_commit_wall_seconds: the same sum, median over the earlier batches that had rows and took at most 1.1
        intervals
"""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import harm, state_cost
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_COMMIT_SHARE = 0.5  # of a batch, from which nothing else can be the larger part
MIN_TIMES_USUAL = 2.0  # over the usual, at as many rows
MIN_EXCESS_SHARE = 0.5  # of the time by which the batch became longer
MIN_SECONDS = 0.5  # a second of wall time at most is what a local disk needs for some partitions
MAX_GC_SHARE = 0.2  # of the task time; above it everything is slow, and saving no more than the rest


class Commit(NamedTuple):
    """Medians over the latest batches, wall seconds; `usual` is None without a past."""

    seconds: float
    duration: float
    usual: float | None
    share: float  # of the batch, or of what it became longer by


@once
def _commit(view: QueryView) -> Commit | None:
    latest = view.baseline.recent
    if len(latest) < RECENT_BATCHES or not any(batch.operators for batch in latest):
        return None
    seconds = median(state_cost.commit_seconds(view, batch) for batch in latest)
    duration = median(batch.duration for batch in latest)
    past = view.baseline.usual
    if not past:
        return Commit(seconds, duration, None, min(1.0, seconds / duration) if duration > 0 else 0.0)
    before = median(state_cost.commit_seconds(view, batch) for batch in past)
    longer = duration - median(batch.duration for batch in past)
    return Commit(seconds, duration, before, min(1.0, max(0.0, (seconds - before) / longer)) if longer > 0 else 0.0)


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or not view.last.operators or not harm.examined(view):
        return
    commit = _commit(view)
    if commit is None or commit.seconds < MIN_SECONDS or not _to_blame(view, commit):
        return
    operator = max(view.last.operators, key=lambda each: each.commit_seconds)
    at = view.last.ended
    evidence = [
        Evidence(
            "state_commit_wall_seconds", commit.seconds, "seconds", f"< {MIN_COMMIT_SHARE * commit.duration:.1f}", at
        ),
        Evidence("state_commit_share", commit.seconds / commit.duration, "ratio", f"< {MIN_COMMIT_SHARE:g}", at),
    ]
    before = ""
    if commit.usual is not None:
        evidence.append(Evidence("usual_state_commit_wall_seconds", commit.usual, "seconds", "the usual", at))
        before = f" (usually {commit.usual:.1f} s)"
    yield Finding(
        f"saving the state takes {commit.seconds:.1f} s of a batch of {commit.duration:.1f} s{before}",
        Component("operator", operator.name),
        tuple(evidence),
        _remedies(operator.custom),
        confidence=min(0.95, 0.5 + 0.4 * commit.share + (0.05 if commit.usual is not None else 0.0)),
        began=view.baseline.recent[0].started,
        share=commit.share,
    )


def _to_blame(view: QueryView, commit: Commit) -> bool:
    gc = state_cost.gc_of_stages(view)
    if gc is not None and gc.share >= MAX_GC_SHARE:
        return False
    if commit.usual is None:
        return commit.seconds >= MIN_COMMIT_SHARE * commit.duration
    return commit.share >= MIN_EXCESS_SHARE and commit.seconds >= MIN_TIMES_USUAL * commit.usual


def _remedies(custom: object) -> tuple[Remedy, ...]:
    place = Remedy(
        "time the writing of a 1 MB file to the checkpoint folder, and move the folder to a faster file system",
        "each batch waits until its state is saved there; more cores do not help",
    )
    if not any(str(name).startswith("rocksdb") for name in (custom if isinstance(custom, dict) else ())):
        return (place,)
    changelog = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
    return place, Remedy(
        f"set {changelog}=true, leave compactOnCommit off, and restart",
        "a batch then saves only its changes, and full snapshots are uploaded in the background",
        command=f'spark.conf.set("{changelog}", "true")',
    )


def acquit(view: QueryView) -> str | None:
    if view.cluster.cores is None:
        return None  # task seconds over an unknown number of slots acquit nobody
    commit = _commit(view)
    if commit is None or commit.duration <= 0 or commit.seconds >= MIN_COMMIT_SHARE * commit.duration:
        return None
    return f"saving the state takes {commit.seconds:.1f} s of a batch of {commit.duration:.1f} s"


RULE = Rule(
    "state-commit-slow", "warning", check, __doc__, ("falling-behind", "trigger-overrun"), acquit, needs_harm=True
)
