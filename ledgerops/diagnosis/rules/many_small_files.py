"""Many small files: each batch adds many small files to the table or folder that the query writes.

Meaning: the commits of the query add at least 20 files a batch, of less than 1 MB on average. Each task writes a file
    for each value of `partitionBy` for which it has rows.
Impact: none on this query while its batches end in time. Whoever reads them opens all these files, the log of the table
    or folder grows with them, and commits take longer from week to week.
Diagnosis: 1. `rate(ledgerops_sink_files_total{app="APP",query="QUERY"}[5m]) /
    rate(ledgerops_batches_total{app="APP",query="QUERY"}[5m])` is the number of files a batch, and
    `rate(ledgerops_sink_bytes_total{app="APP",query="QUERY"}[5m]) /
    rate(ledgerops_sink_files_total{app="APP",query="QUERY"}[5m])` their size.
    2. Compare the number with the tasks of the stage that writes (Spark UI, page "Stages"). As many: too many tasks
    write. Many more: `partitionBy` has many values, and each task has rows of most of them.
    3. `ledgerops_sink_uncheckpointed_versions{app="APP",query="QUERY"}` is how many commits a reader of the table must
    replay.
Mitigation: compact the table: `OPTIMIZE` (Delta), `rewrite_data_files` (Iceberg). A folder of plain files cannot be:
    readers go by its log, which names the old ones. Then write fewer files: repartition the rows by the columns of
    `partitionBy` before the write, or write from fewer tasks, or set `delta.autoOptimize.optimizeWrite`. A longer
    trigger interval also makes files larger.
Evidence:
    files_per_commit: files that a commit of the query adds, the median of the newest 3 that add any; while batches are
        late, of their commits
    bytes_per_file: bytes of the files of such a commit divided by their number, also the median
    uncheckpointed_versions: head - checkpoint of the newest `tables` record; head + 1 without a checkpoint
"""

from collections.abc import Iterator

from ledgerops.diagnosis.facts.context import MAX_FILE_BYTES, MIN_FILES, sink_kind, sink_name, small_files
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

WRITE_FEWER = Remedy(
    "write from fewer tasks: coalesce before the write, or repartition by the columns of partitionBy, if there are any",
    "each task writes a file of its own, for each value of these columns",
    safe=False,
)
COMPACT = first_step("many-small-files", GENERAL, "readers open every file; compacting changes no row")
COMPARE = first_step("many-small-files", "sink files", "readers open every file")


def check(view: QueryView) -> Iterator[Finding]:
    found = small_files(view)
    if found is None or found.commits < RECENT_BATCHES:
        return
    evidence = [
        Evidence("files_per_commit", found.files, "count", f"< {MIN_FILES:g}", view.now),
        Evidence("bytes_per_file", found.bytes, "bytes", f"> {MAX_FILE_BYTES:g}", view.now),
    ]
    behind = view.tables.versions_since_checkpoint
    if behind is not None:
        evidence.append(Evidence("uncheckpointed_versions", float(behind), "count", "about 10", view.now))
    yield Finding(
        f"each batch adds {found.summary}, by the last {found.commits} commits",
        Component("sink", sink_name(view), "files"),
        tuple(evidence),
        (COMPARE if sink_kind(view) == "files" else COMPACT, WRITE_FEWER),
        confidence=0.9,
    )


RULE = Rule("many-small-files", "info", check, __doc__)
