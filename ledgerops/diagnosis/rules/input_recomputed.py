"""Input recomputed: each batch reads and computes the same rows several times.

Meaning: Spark counted a multiple of the offsets that the batch covers, or several stages read as many rows each, which
    together are all that Spark counted. In `foreachBatch` every action (a write, a
    count, a show) computes the batch from its source again unless it is persisted. In other queries the plan reads the
    source more than once, as a union or a join of a stream with itself does.
Impact: the source sends all rows several times, and everything up to the action is computed as often. Of Kafka, rows
    and rates of ledgerops count each row once; of other sources they count it each time, as Spark's progress does.
Diagnosis: 1. Count the actions of the function that `foreachBatch` calls, also those on data frames made of the batch.
    2. Without `foreachBatch`, look for several scans of the same source in the plan (tab SQL of the Spark UI).
    3. `ledgerops_busy_ratio{app="APP",query="QUERY"}` says whether the query has time to spare.
Mitigation: call `persist()` on the batch at the beginning of the function and `unpersist()` at its end, in `finally`.
    It needs memory or disk for one batch.
Evidence:
    times_read: of Kafka the smallest of rows over offsets, rounded, of a source in the three newest batches with new
        offsets; of other sources the fewest stages without a shuffle in the newest two batches whose tasks were read,
        all of as many rows, which together are numInputRows, and either of as many tasks, more than one, or of as many
        bytes
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from ledgerops.diagnosis.facts.context import sink_kind
from ledgerops.diagnosis.limits import LOOKBACK_BATCHES, MIN_BATCHES
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress, StageSummary, TaskSummary
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    newest_first = islice((batch for batch in reversed(view.batches) if batch.rows > 0), RECENT_BATCHES)
    batches = list(newest_first)[::-1]
    if len(batches) < RECENT_BATCHES:
        return
    times: dict[str, int] = {}  # source -> the fewest
    for batch in batches:
        for each in batch.sources:
            if each.read > 0:
                times[each.name] = min(each.times_read, times.get(each.name, each.times_read))
    for source, count in _by_stages(view).items():
        times[source] = max(count, times.get(source, 1))
    name = max(times, key=lambda source: times[source], default=None)
    if name is None or times[name] < 2:
        return
    in_function = sink_kind(view) == "foreach_batch"
    yield Finding(
        f"each batch reads its rows of {name} {times[name]} times"
        + (": once for each action on the batch in foreachBatch" if in_function else ""),
        Component("source", name),
        (Evidence("times_read", float(times[name]), "count", "1", view.now),),
        (COUNT_ACTIONS, PERSIST) if in_function else (READ_ONCE,),
        confidence=0.9,
    )


def _by_stages(view: QueryView) -> dict[str, int]:
    """How often the only source is read, where Spark does not tell it by offsets, by the newest batches with tasks."""
    if len(view.sources) != 1:
        return {}
    with_rows = (batch for batch in reversed(view.batches[-LOOKBACK_BATCHES:]) if batch.rows > 0)
    known = ((batch, view.history.tasks_of(batch)) for batch in with_rows)
    read = islice((_repeats(batch, tasks) for batch, tasks in known if tasks is not None), MIN_BATCHES)
    times = [len(each) for each in read]
    return {view.sources[0].name: min(times)} if len(times) == MIN_BATCHES else {}


def _repeats(batch: Progress, tasks: TaskSummary) -> Sequence[StageSummary]:
    """The stages that read all rows of the batch each; none where they may have read different ones.

    `limit`, `take` and `show` read partition after partition, each in a stage with a task of its own.
    """
    reading = [stage for stage in tasks.stages if stage.records > 0 and not stage.reads_shuffle]
    if len({stage.records for stage in reading}) != 1 or sum(stage.records for stage in reading) != batch.rows:
        return []
    tasks_alike = len({stage.tasks for stage in reading}) == 1 and reading[0].tasks > 1
    bytes_alike = len({stage.input_bytes for stage in reading}) == 1 and reading[0].input_bytes > 0
    return reading if tasks_alike or bytes_alike else []


PERSIST = Remedy(
    "persist() the batch at the beginning of the foreachBatch function and unpersist() it at the end",
    "the source is then read and computed once, and each further action reads the kept rows",
    safe=False,
)
COUNT_ACTIONS = first_step(
    "input-recomputed", "sink foreach_batch", "each of them reads and computes the rows again, unless they are kept"
)
READ_ONCE = first_step(
    "input-recomputed", GENERAL, "a union or a join of a stream with itself reads its source once for each side"
)

RULE = Rule("input-recomputed", "info", check, __doc__)
