"""Statement retries: what foreachBatch writes fails and is done again, which takes most of each batch.

Meaning: a SQL statement of the function of `foreachBatch` (a MERGE, a write, a read) ended with an exception, and the
    function caught it and went on, mostly with another try, for which it may wait a while. The usual reason is a table
    with several writers: a Delta or Iceberg commit that another one overtook throws away all that its statement did.
Impact: batches take as many times longer as there are tries, and the cores do work for nothing. The rows that Spark
    reports for a batch count each try. Once the function gives up, the query fails.
Diagnosis: 1. Read the exception in the finding. It is that of the failed statement that took longest.
    2. A conflict of commits: `DESCRIBE HISTORY` of the table shows who else commits while the batch runs, and with
    which operation.
    3. Anything else: the Spark UI, page SQL, lists the failed statements of the query with their exceptions.
    4. `ledgerops_batch_part_seconds{app="APP",query="QUERY",part="failed_statements"}` is what they take of a batch.
Mitigation: let one query write to the table at a time, or give each writer partitions of its own and name these in the
    condition of its MERGE. Run DELETE and OPTIMIZE while the query rests. For other exceptions remove what they blame.
"""

from ledgerops.common.format import counted
from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.exception_text import first_line
from ledgerops.diagnosis.facts.known_failures import RESUME, explain
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence
from ledgerops.signals.query_view import QueryView

CONFLICTS = ("concurrent-append", "concurrent-delete", "iceberg-commit-conflict")


def _tell(view: QueryView, found: Profile) -> Told:
    """Names the exception of the failed statement that took longest."""
    failed = [each for split in found.splits for each in split.failed]
    error = max(failed, key=lambda each: each.ended - each.started).error
    known = explain(error)
    conflict = known is not None and known.name in CONFLICTS
    why = "the function of foreachBatch does the whole statement again"
    steps = [first_step("statement-retries", "conflict" if conflict else GENERAL, why)]
    if known is not None and RESUME not in known.first_step.action:
        steps.append(known.first_step)
    return Told(
        Component("sink", view.plan.sink or "foreachBatch"),
        tuple(steps),
        {
            "statements": f"{counted(len(failed), 'statement')} in {counted(len(found.splits), 'batch', 'batches')}",
            "exception": first_line(error) + (f"; {known.happened}" if known is not None else ""),
        },
        (Evidence("failed_executions", float(len(failed)), "count", "0", found.at),),
    )


CAUSE = Cause(
    slug="statement-retries",
    runbook=__doc__,
    parts=("failed_statements",),
    happened="{seconds} of a batch of {batch} go to {statements} that fail and are done again: {exception}",
    formulas={"failed_executions": "SQL executions with an error in the batches that the finding names, together"},
    tell=_tell,
)
