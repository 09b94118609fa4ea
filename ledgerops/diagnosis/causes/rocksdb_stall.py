"""RocksDB stall: writes to the state store stall because flushes or compactions do not keep up.

Meaning: RocksDB pauses writes when its write buffers are full, or when too many files wait for compaction. Meanwhile
    the tasks of the query wait.
Impact: batches take longer for the same number of rows. If it lasts, the query falls behind.
Diagnosis: 1. `rate(ledgerops_rocksdb_writer_stall_seconds_total{app="APP",query="QUERY"}[5m])` is above 0 (in task
    seconds). If it is back at 0, the stall is over.
    2. Compare what a store writes in a batch with its write buffers, where the finding names them. What does not fit
    into them waits for a flush.
    3. Check the disk of `spark.local.dir` with `iostat -x`. If it is busy, flushes and compactions wait for the disk;
    if it is not, the write buffers are too small.
    4. Compare `ledgerops_state_rows{app="APP",query="QUERY"}` with its past. If it grows faster than before, the load
    changed; if not, the disk or the settings did.
Mitigation: raise the setting that the finding names. Otherwise move other work away from the disk of `spark.local.dir`.
    At the next restart put `spark.local.dir` on a local SSD, or give RocksDB larger buffers: with `boundedMemoryUsage`
    raise `maxMemoryUsageMB` or `writeBufferCacheRatio`, without it `writeBufferSizeMB`. All of these may be changed
    with the same checkpoint.
"""

from math import ceil, log2

from ledgerops.common.format import size
from ledgerops.diagnosis.batch_parts import STALL
from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.profile import Profile
from ledgerops.diagnosis.rule import LATE
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.delta_log import whole_number
from ledgerops.model.finding import Component, Evidence, Remedy, Setting
from ledgerops.model.state_settings import BOUNDED, BUFFER, BUFFERS, PREFIX
from ledgerops.signals.query_view import QueryView

DEFAULT_BUFFER_MIB, DEFAULT_BUFFERS = 64, 2  # of each store, by RocksDB itself
DISK = first_step(
    "rocksdb-stall", GENERAL, "RocksDB stalls writes while flushes and compactions wait, or its buffers are full"
)
LARGER = Remedy(
    "give RocksDB larger buffers at the next start: maxMemoryUsageMB where memory is bounded, else writeBufferSizeMB",
    "the settings may be changed with the same checkpoint",
    safe=False,
)


def _tell(view: QueryView, found: Profile) -> Told:
    """Names the buffers where each store writes more in a batch than all of its own hold."""
    stalled = max(view.operators, key=lambda each: each.custom.get(STALL, 0.0), default=None)
    component = Component("operator", stalled.name if stalled is not None else "state", "RocksDB")
    set_to, usual = view.plan.state_settings, Told(component, (DISK, LARGER))
    if set_to is None or stalled is None or set_to.get(BOUNDED) == "true":
        return usual
    # 0 and -1 stand for the default
    buffer = whole_number(set_to.get(BUFFER)) or DEFAULT_BUFFER_MIB
    buffers = whole_number(set_to.get(BUFFERS)) or DEFAULT_BUFFERS
    written = stalled.custom.get("rocksdbTotalBytesWritten", 0.0) / (stalled.stores or stalled.shuffle_partitions or 1)
    held = buffer * buffers * 2**20
    if written <= held:
        return usual
    enough = 2 ** ceil(log2(buffer * written / held))
    step = first_step(
        "rocksdb-stall",
        "buffers",
        f"each store writes {size(written)} in a batch into {buffers} buffers; the checkpoint stays as it is",
        settings=(Setting(PREFIX + BUFFER, enough),),
        now=f"{buffer}",
        number=f"{enough}",
    )
    more = Evidence("written_by_each_store_bytes", written, "bytes", f"<= {held}", view.now)
    return Told(component, (step,), more=(more,))


CAUSE = Cause(
    slug="rocksdb-stall",
    runbook=__doc__,
    parts=("state_stall",),
    min_share=0.1,  # less is a flush now and then, as RocksDB means it to be
    happened="writes to the state stall for {seconds} of a batch of {batch}",
    explains=(*LATE, "state-commit-slow"),
    formulas={
        "written_by_each_store_bytes": "rocksdbTotalBytesWritten of the operator in the newest batch, divided by its "
        "numStateStoreInstances; should fit into rocksdb.writeBufferSizeMB (64) x rocksdb.maxWriteBufferNumber (2)",
    },
    tell=_tell,
)
