"""Checkpoint slow: writing the checkpoint takes a large part of each batch.

Meaning: Spark writes a small file with the offsets before each batch (`wal_commit`) and another one after it
    (`commit_offsets`). These writes take much longer than they should, or than they used to.
Impact: every batch takes longer, however few rows it has, so batches outlast the trigger interval. The state store and
    file sinks often write to the same storage and slow down as well.
Diagnosis: 1. `sum by (phase)
    (rate(ledgerops_batch_phase_seconds_total{query="QUERY",phase=~"wal_commit|commit_offsets"}[5m]))` divided by
    `rate(ledgerops_batches_total{query="QUERY"}[5m])` gives the seconds of each write. Well above 0.5 s means that the
    storage is slow.
    2. Time the writing of a small file to the checkpoint folder by hand. If it is slow too, the storage is the cause:
    on an object store check for throttling, on HDFS check the name node, on a disk check its queue (`iostat -x`). If it
    is fast, the driver is: look for garbage collection and a busy CPU there.
    3. Check whether other queries have the same finding. If they do, they share the storage and its limits.
Mitigation: make the trigger interval longer if results may be that old: fewer batches write fewer files. Then move the
    checkpoint to storage with low latency (a local disk or HDFS rather than an object store), raise its rate limit, or
    clear a full disk. For a stateless query with a Kafka sink, `asyncProgressTrackingEnabled` writes the offsets in
    parallel with the batch. More cores do not help.
Evidence:
    checkpoint_seconds_median: median of (durationMs.walCommit + durationMs.commitOffsets) / 1000 over the newest 3
        batches of the run, without those of its first 10 s
    usual_checkpoint_seconds: the same over the usual batches: all batches of the run before the newest 4 that had rows
        and took at most 1.1 times the interval, if there are at least 5. Without an interval, the newest ones that took
        1.5 times as long for their rows as the median of these do not count
    checkpoint_share: checkpoint_seconds_median divided by the median of durationMs.triggerExecution / 1000 of the same
        3 batches
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.diagnosis import cpu_contention, harm
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

PHASES = ("wal_commit", "commit_offsets")
MIN_SECONDS = 1.0  # for both; an object store takes 0.1 to 0.3 s for each small file, a busy disk 0.7 s for two
MIN_TIMES_USUAL = 3.0  # a loaded machine makes everything slower, but not this part alone by so much
MIN_GROWN_SHARE = 0.3  # of the batch, where it grew
MIN_STEADY_SHARE = 0.5  # of the batch, where it was always like that or the past is not known
MIN_EXCESS_SHARE = 0.3  # of the time by which the batch became longer


def check(view: QueryView) -> Iterator[Finding]:
    latest = view.baseline.recent
    if len(latest) < RECENT_BATCHES or median(_seconds(batch) for batch in latest) < MIN_SECONDS:
        return
    if not harm.examined(view):
        return
    if cpu_contention.gc_share(view, "driver") >= cpu_contention.MIN_GC_SHARE:  # its JVM writes the files
        return
    usual = view.baseline.usual
    now, duration = median(_seconds(batch) for batch in latest), median(batch.duration for batch in latest)
    before = median(_seconds(batch) for batch in usual) if usual else None
    share, grew = now / duration, False
    if before is not None:
        longer = duration - median(batch.duration for batch in usual)
        grew = (
            now >= MIN_TIMES_USUAL * before and now - before >= MIN_EXCESS_SHARE * longer and share >= MIN_GROWN_SHARE
        )
    if not (grew or share >= MIN_STEADY_SHARE):  # a busy machine takes longer for tasks than for two small files
        return
    at = latest[-1].ended
    evidence = [
        Evidence(
            "checkpoint_seconds_median",
            now,
            "seconds",
            f"< {max(MIN_SECONDS, MIN_TIMES_USUAL * (before or 0.0)):.1f}",
            at,
        ),
        Evidence("checkpoint_share", share, "ratio", f"< {MIN_GROWN_SHARE if grew else MIN_STEADY_SHARE:g}", at),
    ]
    if before is not None:
        evidence.append(Evidence("usual_checkpoint_seconds", before, "seconds", "the usual", at))
    yield Finding(
        f"{now:.1f} s of a batch of {duration:.1f} s are spent writing the checkpoint"
        + (f"; the usual is {before:.1f} s" if before is not None else ""),
        Component("query", view.query, "checkpoint"),
        tuple(evidence),
        _remedies(view),
        confidence=min(0.95, 0.5 + 0.4 * share + (0.15 if grew else 0.0)),
        began=latest[0].started,
        share=min(1.0, (now - (before or 0.0)) / duration),
    )


def _seconds(batch: Progress) -> float:
    return sum(batch.phases.get(phase, 0.0) for phase in PHASES)


def _remedies(view: QueryView) -> tuple[Remedy, ...]:
    storage = Remedy(
        "check the storage of the checkpoint: latency of small writes, throttling, free space",
        "two small files are written for each batch; more cores do not help",
    )
    if view.run.stateful:
        rarer = Remedy("make the trigger interval longer if results may be that old", "fewer batches write fewer files")
    else:
        rarer = Remedy(
            "set asyncProgressTrackingEnabled at the next start if the sink is Kafka",
            "the offsets are then written in parallel with the batches; after a failure rows may be repeated",
            safe=False,
        )
    return storage, rarer


def acquit(view: QueryView) -> str | None:
    latest = view.baseline.recent
    if len(latest) < RECENT_BATCHES:
        return None
    spent, duration = median(_seconds(each) for each in latest), median(each.duration for each in latest)
    if spent >= MIN_GROWN_SHARE * duration:
        return None
    return f"writing the checkpoint takes {spent:.1f} s of a batch of {duration:.1f} s"


RULE = Rule(
    "checkpoint-slow",
    "warning",
    check,
    __doc__,
    ("falling-behind", "trigger-overrun", "small-batch-overhead", "state-commit-slow"),
    acquit,
    needs_harm=True,
)
