"""Checkpoint full: the query failed because the storage of its checkpoint rejects writes.

Meaning: the file system rejected a write of a batch's offsets, its commit or its state. No space is left, a quota is
    used up, or the write permission is gone. Neither the rows nor the query is the cause.
Impact: no batch can start until writes succeed again. Nothing is lost: the checkpoint still has the offsets to resume
    from.
Diagnosis: 1. Read the error of the file system in the finding. "No space" or "quota" means that storage is used up;
    "File too large" means a limit on the size of a file; "permission" or "access denied" means that the credentials or
    the owner of the folder changed.
    2. Check the storage of the folder with `df -h` and `df -i`, HDFS with `hdfs dfs -count -q`, and for a bucket its
    permissions and billing. If `df -i` shows 100%, it has space but no free inodes: remove small files.
    3. If `ledgerops_query_failures_total{app="APP",query="QUERY"}` rises, something restarts the query and each start
    fails. Stop the restarts.
Mitigation: free space outside the checkpoint, or raise the quota, then start the query with the same checkpoint. Never
    delete files inside a checkpoint by hand. To keep less from now on, lower `spark.sql.streaming.minBatchesToRetain`
    and bound the state.
Evidence:
    ledgerops_query_failures_total: number of `terminated` records of the query with an exception so far
"""

import re
from collections.abc import Iterator

from ledgerops.diagnosis.facts.exception_text import first_line
from ledgerops.diagnosis.facts.failures import failures, newest_failure
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Finding, Remedy
from ledgerops.signals.query_view import QueryView

REFUSED = {  # why a write is refused: the context of its first step, and what file systems say
    GENERAL: re.compile(r"No space left on device|[Qq]uota *[Ee]xceeded"),
    "file size": re.compile(r"File too large"),
    "permission": re.compile(r"Read-only file system|Permission denied|Access ?Denied"),
}
CHECKPOINT = re.compile(r"\b(HDFSMetadataLog|CheckpointFileManager|RocksDBFileManager|HDFSBackedStateStore)\b")


def check(view: QueryView) -> Iterator[Finding]:
    ended = newest_failure(view)
    said = (ended.exception or "") if ended is not None else ""
    why = next((context for context, signs in REFUSED.items() if signs.search(said)), None)
    if ended is None or why is None or not CHECKPOINT.search(said):
        return
    yield Finding(
        f"the query failed because the storage of its checkpoint rejects writes: {first_line(said)}",
        Component("query", view.query, "checkpoint"),
        (failures(view, ended.at),),
        (
            first_step("checkpoint-full", why, "nothing is lost: the checkpoint has the offsets to resume from"),
            Remedy(
                "lower spark.sql.streaming.minBatchesToRetain",
                "the checkpoint then keeps the files of fewer batches, so a rollback cannot go back as far",
                safe=False,
            ),
        ),
        confidence=0.95,
        began=ended.at,
    )


RULE = Rule("checkpoint-full", "critical", check, __doc__, ("query-failed", "crash-loop"), outlives=True, at_rest=True)
