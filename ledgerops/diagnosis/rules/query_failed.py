"""Query failed: the query ended with an exception.

Meaning: Spark stopped the query because of an error. A query that was stopped on purpose, or that had read all there
    was with an `availableNow` trigger, has not failed.
Impact: no result comes out until it is started again. Rows wait in the source for as long as that keeps them.
Diagnosis: the error class and the first line of the exception are in the finding. How often it happened:
    `sum by (error_class) (increase(ledgerops_query_failures_total{query="QUERY"}[1h]))`. The whole stack is in the
    driver's log; in a recording: `grep '"terminated"' RECORDING | tail -1`.
Mitigation: repair what the exception names, then start the query with the same checkpoint: it repeats the batch that
    failed. If it fails again in the same batch, a row of that batch is the cause: see its offsets in the Spark log.
"""

import re
from collections.abc import Iterator

from ledgerops.diagnosis.model import Component, Evidence, Finding, Remedy, Rule
from ledgerops.view import View

TASK = re.compile(r"Lost task .*? executor \S+?\): ")
LINE = 160  # characters of the exception's first line that are shown


def check(view: View) -> Iterator[Finding]:
    ended = view.history.ended
    if ended is None or ended.exception is None:
        return
    kind = ended.error_class or "no error class"
    batch = f" after batch {view.last.batch_id}" if view.last is not None else " before its first batch"
    failures = sum(view.history.failures.values())
    yield Finding(
        f"the query failed{batch} ({kind}): {first_line(ended.exception)}",
        Component("query", view.query, ended.error_class),
        (Evidence("ledgerops_query_failures_total", float(max(1, failures)), "count", "0", ended.at),),
        (
            Remedy(
                "repair what the exception names, then start the query with the same checkpoint",
                "it resumes with the batch that failed; a new checkpoint would repeat or lose rows",
                safe=False,
            ),
        ),
        confidence=1.0,
        began=ended.at,
    )


def first_line(exception: str) -> str:
    """The line that says what happened: without the stack, without the package of the class."""
    lines = [line.strip() for line in exception.splitlines() if line.strip()]
    line = lines[0] if lines else exception.strip()
    lost = TASK.search(line)  # Spark 3.5 tells the real exception only after the task that it killed
    line = line[lost.end() :] if lost and line[lost.end() :] else line
    name, colon, rest = line.partition(": ")
    if colon and rest and " " not in name:
        line = f"{name.rsplit('.', 1)[-1]}: {rest}"
    return line if len(line) <= LINE else line[: LINE - 3] + "..."


RULE = Rule(
    slug="query-failed", severity="critical", check=check, runbook=__doc__, linger=0.0, outlives=True, at_rest=True
)
