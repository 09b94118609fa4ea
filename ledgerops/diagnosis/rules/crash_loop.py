"""Crash loop: the query fails, is started again, and fails again.

Meaning: at least three runs of the query ended with an exception, or in their first batch without a word, as when the
    driver is killed, within 15 minutes, and something restarted it each time. If all of them failed in the same batch,
    a row of that batch cannot be processed, the source cannot be read on from there, or the sink fails.
Impact: little or nothing is committed. Each start takes cores from other queries, and results become outdated.
Diagnosis: 1. Read the exception and the batch in the finding. If every run failed in the same batch, its rows or the
    sink are the cause. If the batches differ, the environment is: memory, network, credentials. Without an exception,
    see how the driver ended: exit code 137 or OOMKilled means that it was killed, most often for its memory.
    2. `sum by (error_class) (ledgerops_query_failures_total{app="APP",query="QUERY"})` shows whether all failures are
    of one class. If they are not, repair the most frequent one first.
    3. If `ledgerops_query_restarts_total{app="APP",query="QUERY"}` still rises, restarts go on: stop whatever starts
    the query.
Mitigation: stop whatever restarts the query. Then repair the cause: write rows that cannot be read to a dead-letter
    output, or bring back a sink that is full or unreachable. Start the query with the same checkpoint. Never delete the
    checkpoint to skip a batch: that loses the state and the offsets.
Evidence:
    failures_in_window: number of `terminated` records of the query with an exception, and of runs that finished no
        batch before another driver wrote the recording, at most 900 s older than the newest one.
    ledgerops_query_restarts_total: number of `started` records of the query whose run id differs from the one before.
    failed_batch_id: the highest batchId in the progress records before the newest failure, plus one; none without any.
    failures_in_that_batch: number of failures in the window that have that failed_batch_id, or none.
"""

from collections.abc import Iterator
from functools import partial

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.context import may_read_files, writes_itself
from ledgerops.diagnosis.facts.exception_text import error_class, first_line, raised_at
from ledgerops.diagnosis.facts.failures import MIN_FAILURES, crash_loop
from ledgerops.diagnosis.facts.known_failures import explain
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView

SAME = "each start repeats the same batch with the same rows and fails again"
WRITTEN_AGAIN = f"{SAME}, and the sink's function writes again what it wrote before that"
ANOTHER = "another start fails again while the cause remains"
UNRECORDED = "nothing was recorded of the end, as when a driver is killed"
SET_ASIDE = Remedy(
    "write rows that cannot be read to a dead-letter output instead of raising an exception",
    "one bad row then no longer blocks the others; the checkpoint stays valid",
    safe=False,
)


def check(view: QueryView) -> Iterator[Finding]:
    loop = crash_loop(view)
    if loop is None:
        return
    failed, batches = loop
    batch, told = batches[-1], [end for end in failed if end.exception is not None]
    newest = (told or failed)[-1]
    same = batches.count(batch)
    number = [] if batch is None else [float(batch)]
    seconds = failed[-1].at - failed[0].at
    exception = newest.exception or ""
    line = first_line(exception) or UNRECORDED
    kind = error_class(newest.error_class, line) or ("no error class" if exception else "no exception")
    where = "its first batch" if batch is None else f"batch {batch}"
    repeated = f", {'each time' if same == len(batches) else f'{same} times'} in {where}" if same > 1 else ""
    restarts = view.history.restarts
    often = f" ({restarts} restarts in all)" if restarts > len(failed) else ""
    failure = explain(exception, may_read_files(view))
    why = ANOTHER if same == 1 else WRITTEN_AGAIN if writes_itself(view) else SAME
    stop = partial(first_step, "crash-loop", GENERAL if exception else "killed")
    if failure is None:
        steps: tuple[Remedy, ...] = (stop(why), *((SET_ASIDE,) if exception else ()))
    elif failure.start_is_enough:  # that is what has failed each time
        steps = (*((failure.again,) if failure.again is not None else ()), stop(failure.first_step.why))
    else:
        steps = failure.first_step, stop(why)
    yield Finding(
        f"the query failed {len(failed)} times in {duration(seconds)} and was started again{often}{repeated} "
        f"({kind}): {line}{f'; {failure.happened}' if failure is not None else ''}{raised_at(exception)}",
        Component("query", view.query, kind),
        (
            Evidence("failures_in_window", float(len(failed)), "count", f"<= {MIN_FAILURES - 1}", newest.at),
            Evidence("ledgerops_query_restarts_total", float(restarts), "count", "0", newest.at),
            *(Evidence("failed_batch_id", each, "count", "another each time", newest.at) for each in number),
            Evidence("failures_in_that_batch", float(same), "count", "1", newest.at),
        ),
        steps,
        confidence=0.95 if same >= MIN_FAILURES else 0.85,
        began=failed[0].at,
    )


EXPLAINS = ("query-failed", "freshness-breach")
RULE = Rule("crash-loop", "critical", check, __doc__, EXPLAINS, linger=0.0, outlives=True, at_rest=True)
