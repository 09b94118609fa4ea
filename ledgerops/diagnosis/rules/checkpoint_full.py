"""Checkpoint full: the query failed because the storage of its checkpoint rejects writes.

Meaning: the file system rejected a write of a batch's offsets, its commit or its state: no space is left, a quota is
    used up, or the write permission is gone. Neither the rows nor the query is the cause.
Impact: no batch can start before there is space. Nothing is lost: the checkpoint still has the offsets to resume from.
Diagnosis: `ledgerops_query_failures_total{query="QUERY"}` rises with each start; the finding quotes the error of the
    file system. Check the folder's storage with `df -h` and `df -i` (files may run out before bytes do), a quota with
    `hdfs dfs -count -q`, and the permissions and billing of a bucket.
Mitigation: make room or lift the quota, then start the query with the same checkpoint. Delete nothing inside a
    checkpoint by hand. Keep less of it: lower `spark.sql.streaming.minBatchesToRetain`, and bound the state.
Evidence:
    ledgerops_query_failures_total: `terminated` records of the query with an exception, up to now
"""

import re
from collections.abc import Iterator

from ledgerops.diagnosis.rule import Rule
from ledgerops.diagnosis.rules.query_failed import first_line
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.history import Ended
from ledgerops.signals.query_view import QueryView

REFUSED = re.compile(
    r"No space left on device|File too large|[Qq]uota *[Ee]xceeded|Read-only file system"
    r"|Permission denied|Access ?Denied"
)
CHECKPOINT = re.compile(r"\b(HDFSMetadataLog|CheckpointFileManager|RocksDBFileManager|HDFSBackedStateStore)\b")
RECENT = 60.0  # seconds after a failure; a query that is started again and again fails within them


def check(view: QueryView) -> Iterator[Finding]:
    ended = _refused(view)
    if ended is None or ended.exception is None:
        return
    failures = float(max(1, sum(view.history.failures.values())))
    yield Finding(
        f"the checkpoint's storage takes no more writes, and the query failed of it: {first_line(ended.exception)}",
        Component("query", view.query, "checkpoint"),
        (Evidence("ledgerops_query_failures_total", failures, "count", "0", ended.at),),
        (
            Remedy(
                "make room in the storage of the checkpoint, or lift its quota, and start the query again",
                "the checkpoint tells where to go on: nothing is lost",
            ),
            Remedy(
                "lower spark.sql.streaming.minBatchesToRetain",
                "the checkpoint then keeps the files of fewer batches; a rollback reaches less far",
                safe=False,
            ),
        ),
        confidence=0.95,
        began=ended.at,
    )


def _refused(view: QueryView) -> Ended | None:
    """The end of the run, or that of the one before while this one has done nothing yet."""
    ended = view.history.ended
    if ended is None and view.history.ends and view.now - view.history.ends[-1].at <= RECENT and not view.batches:
        ended = view.history.ends[-1]
    if ended is None or ended.exception is None:
        return None
    return ended if REFUSED.search(ended.exception) and CHECKPOINT.search(ended.exception) else None


RULE = Rule(
    slug="checkpoint-full",
    severity="critical",
    check=check,
    runbook=__doc__,
    explains=("query-failed", "crash-loop"),
    outlives=True,
    at_rest=True,
)
