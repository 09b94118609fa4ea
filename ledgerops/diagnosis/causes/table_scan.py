"""Table scan: each batch reads a table or files again, beside its input.

Meaning: stages of the batch read far more rows than its sources have. A stream that is joined with a table reads the
    table in each batch, and the driver may broadcast it; `MERGE` reads the files of its target; a function of
    `foreachBatch` reads what it asks for.
Impact: a batch takes as long for one row as for thousands, and longer as the table grows. Fewer rows from the producer
    do not help.
Diagnosis: 1. In the Spark UI, page "SQL", open the query of a batch: the scan with most output rows is the one. Its
    condition shows whether it reads the whole table.
    2. `ledgerops_batch_part_seconds{app="APP",query="QUERY",part="table_scan"}` is what it takes. If it is the same at
    a tenth of the load, the table is read whole each time.
    3. Compare the size of the table with its size a month ago: a table that grows makes batches slower without any
    change of the load.
Mitigation: a longer trigger interval reads the table less often. Then read less of it: only the columns that the batch
    needs, and a condition on the column by which its files are partitioned or clustered, also in that of a `MERGE`.
    Keep a small table in memory: `persist()` before the query starts. Rows that change later are not seen then, until
    the query is started again.
"""

from collections.abc import Sequence
from statistics import median

from ledgerops.diagnosis.batch_parts import Split, scans
from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.context import ANY, fitting
from ledgerops.diagnosis.facts.longer_interval import longer_interval
from ledgerops.diagnosis.limits import CLEAR_TIMES, FAR_TIMES
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import first_step
from ledgerops.model.finding import Component, Evidence, Remedy
from ledgerops.signals.query_view import QueryView

EACH_BATCH = "each batch reads it again, however few rows the batch has"
FIRST = {context: first_step("table-scan", context, EACH_BATCH) for context in (ANY, "sink foreach_batch")}
READ_LESS = Remedy(
    "read only the columns and files that a batch needs (a condition on the partition column), or persist() a small "
    "table before the query starts",
    "what is kept in memory does not see later changes of the table",
    safe=False,
)


def _scanned(splits: Sequence[Split]) -> float:
    """Median rows of a batch that no source brought."""
    read = [scans(split.batch, [each.stage for each in split.stages]) for split in splits]
    return float(median(sum(stage.records for stage in stages) for stages in read))


def _tell(view: QueryView, found: Profile) -> Told:
    now, usual = _scanned(found.splits), _scanned(found.usual_splits) if found.has_past else 0.0
    own = float(median(split.batch.rows for split in found.splits))
    grown = f" (usually {usual:,.0f})" if 0 < CLEAR_TIMES * usual <= now else ""
    longer = longer_interval(view, found.duration, "fewer batches read the table less often")
    return Told(
        Component("query", view.query, "table"),
        (fitting(FIRST, view), *longer, READ_LESS),
        {"scanned": f"{now:,.0f} rows{grown}", "own": f"{own:,.0f}"},
        (Evidence("scanned_rows", now, "rows", f"< {FAR_TIMES * own:.0f}", found.at),),
    )


CAUSE = Cause(
    slug="table-scan",
    runbook=__doc__,
    parts=("table_scan",),
    happened="{seconds} of a batch of {batch} are work on {scanned} that it reads beside the {own} of its sources",
    formulas={"scanned_rows": "median over the batches of the rows that these stages read, without a shuffle"},
    tell=_tell,
)
