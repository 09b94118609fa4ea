"""RocksDB stall: writes to the state store stall because flushes or compactions do not keep up.

Meaning: RocksDB pauses writes when its write buffers are full, or when too many files wait for compaction. Meanwhile
    the tasks of the query wait.
Impact: batches take longer for the same number of rows. If it lasts, the query falls behind.
Diagnosis: 1. `rate(ledgerops_rocksdb_writer_stall_seconds_total{query="QUERY"}[5m])` is above 0 (in task seconds). If
    it is back at 0, the stall is over.
    2. Check the disk of `spark.local.dir` with `iostat -x`. If it is busy, flushes and compactions wait for the disk;
    if it is not, the write buffers are too small.
    3. Compare `ledgerops_state_rows{query="QUERY"}` with its past. If it grows faster than before, the load changed; if
    not, the disk or the settings did.
Mitigation: move other work away from the disk of `spark.local.dir`. At the next restart put `spark.local.dir` on a
    local SSD, or give RocksDB larger buffers: with `boundedMemoryUsage` raise `maxMemoryUsageMB` or
    `writeBufferCacheRatio`, without it `writeBufferSizeMB`. All of these may be changed with the same checkpoint.
"""

from ledgerops.diagnosis.batch_parts import STALL
from ledgerops.diagnosis.cause import Cause, Words
from ledgerops.diagnosis.facts.context import ANY
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Remedy
from ledgerops.signals.query_view import QueryView

DISK = first_step(
    "rocksdb-stall",
    GENERAL,
    "RocksDB stalls writes while flushes and compactions wait for the disk",
)
BUFFERS = Remedy(
    "give RocksDB larger buffers at the next start: maxMemoryUsageMB where memory is bounded, else writeBufferSizeMB",
    "the settings may be changed with the same checkpoint",
    safe=False,
)


def _component(view: QueryView, found: Profile) -> Component:
    operators = view.last.operators if view.last is not None else ()
    stalled = max(operators, key=lambda each: each.custom.get(STALL, 0.0), default=None)
    return Component("operator", stalled.name if stalled is not None else "state", "RocksDB")


CAUSE = Cause(
    slug="rocksdb-stall",
    runbook=__doc__,
    parts=("state_stall",),
    min_share=0.1,  # less is a flush now and then, as RocksDB means it to be
    words=Words(
        happened="writes to the state stall for {seconds} of a batch of {batch}", first={ANY: DISK}, then=(BUFFERS,)
    ),
    component=_component,
    explains=("falling-behind", "trigger-overrun", "state-commit-slow"),
)
