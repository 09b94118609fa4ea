"""Input recomputed: each batch reads and computes the same rows several times.

Meaning: Spark counted a multiple of the offsets that the batch covers, or several stages read as many rows each, which
    together are all that Spark counted. In `foreachBatch` every action (a write, a
    count, a show) computes the batch from its source again unless it is persisted. In other queries the plan reads the
    source more than once, as a union or a join of a stream with itself does.
Impact: the source sends all rows several times, and everything up to the action is computed as often. A batch that
    takes too long may be in time with one reading; while it is in time, this is only worth knowing. Of Kafka, rows and
    rates of ledgerops count each row once; of other sources they count it each time, as Spark's progress does.
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
    saving_seconds: of a query without a healthy past, the median over the batches that the finding names of the time
        in which these stages ran, of Kafka those that read nearly as many rows as offsets, less the longest of them,
        each as a share of durationMs.triggerExecution, times profile_seconds
    profile_seconds: median of durationMs.triggerExecution / 1000 over the batches that the finding names
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from statistics import median

from ledgerops.common.format import duration
from ledgerops.diagnosis.arbiter import ends
from ledgerops.diagnosis.batch_parts import stage_time
from ledgerops.diagnosis.facts.context import sink_kind
from ledgerops.diagnosis.harm import examined, harm
from ledgerops.diagnosis.limits import LOOKBACK_BATCHES, MIN_BATCHES, MIN_SECONDS, NOISE_SHARE, WORTH_SHARE
from ledgerops.diagnosis.profile import Profile, profile
from ledgerops.diagnosis.rule import LATE, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.model.records import Progress, StageSummary, TaskSummary
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

PERSIST = first_step(
    "input-recomputed",
    "saves",
    "the source is then read and computed once, and each further action reads the kept rows",
)
COUNT_ACTIONS = first_step(
    "input-recomputed", "sink foreach_batch", "each of them reads and computes the rows again, unless they are kept"
)
READ_ONCE = first_step(
    "input-recomputed", GENERAL, "a union or a join of a stream with itself reads its source once for each side"
)
EXPLAINS = ("python-bound", "memory-spill", "source-partition-skew", "straggler", "small-batch-overhead", *LATE)


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
    in_function, found = sink_kind(view) == "foreach_batch", profile(view) if examined(view) else None
    saved = _saved_seconds(view, found) if found is not None and not found.has_past else 0.0
    finding = Finding(
        f"each batch reads its rows of {name} {times[name]} times"
        + (": once for each action on the batch in foreachBatch" if in_function else ""),
        Component("source", name),
        (Evidence("times_read", float(times[name]), "count", "1", view.now),),
        (COUNT_ACTIONS, PERSIST) if in_function else (READ_ONCE,),
        confidence=0.9,
        at_most="info",
        share=0.0,
    )
    if found is None or saved < max(MIN_SECONDS, WORTH_SHARE * found.duration):
        yield finding
        return
    least = Evidence("saving_seconds", saved, "seconds", f"< {WORTH_SHARE * found.duration:.2f}", found.at)
    whole, less, share, harmed = duration(found.duration), duration(saved), saved / found.duration, harm(view)
    yield replace(
        finding,
        summary=f"{finding.summary}; read once, a batch of {whole} would take {less} less",
        evidence=(*finding.evidence, least, Evidence("profile_seconds", found.duration, "seconds", "all", found.at)),
        remedies=(PERSIST, COUNT_ACTIONS) if in_function else finding.remedies,
        at_most="critical",
        began=found.splits[0].batch.started,
        share=share if harmed is None or ends(share, harmed) else 0.0,  # it explains what ends with it
        saving_seconds=saved,
        batches=found.batches,
    )


def _by_stages(view: QueryView) -> dict[str, int]:
    """How often the only source is read, where Spark does not tell it by offsets, by the newest batches with tasks."""
    if len(view.sources) != 1 or not view.history.tasks:
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
    times = max((source.times_read for source in batch.sources), default=1)
    if times > 1:
        whole = [stage for stage in reading if abs(stage.records - batch.rows) <= NOISE_SHARE * batch.rows]
        return whole if len(whole) == times else []
    if len({stage.records for stage in reading}) != 1 or sum(stage.records for stage in reading) != batch.rows:
        return []
    tasks_alike = len({stage.tasks for stage in reading}) == 1 and reading[0].tasks > 1
    bytes_alike = len({stage.input_bytes for stage in reading}) == 1 and reading[0].input_bytes > 0
    return reading if tasks_alike or bytes_alike else []


def _saved_seconds(view: QueryView, found: Profile) -> float:
    """Seconds of a typical batch in which its rows are read again: what the longest of the readings takes stays."""
    shares = []
    for batch in (each.batch for each in found.splits):
        tasks = view.history.tasks_of(batch)
        stages = _repeats(batch, tasks) if tasks is not None else []
        at_work = stage_time(replace(tasks, stages=tuple(stages))) if tasks is not None else None
        longest = max((stage.wall_seconds or 0.0 for stage in stages), default=0.0)
        shares.append((at_work.seconds - longest) / batch.duration if at_work is not None else 0.0)
    return median(shares) * found.duration


RULE = Rule("input-recomputed", "warning", check, __doc__, EXPLAINS, needs_harm=True)
