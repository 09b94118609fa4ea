"""Where the wall time of one batch went: parts that add up to its duration.

`DESCRIBED` says what each part is.

A stage's wall time is its share of the time in which any stage is at work. On `slots` cores (at most its tasks) it
needs its longest task, or (run - longest) / slots + longest where not all run at once; what it takes beyond that is
`launch`, or as far as attempts of tasks failed meanwhile `retries`.
What it needs beyond an even split is uneven: by rows (`uneven_keys` behind a shuffle, `uneven_source` where the source
is read: run / slots would do), by executor, or by one task without more rows (the others' pace would do).

The even time of all stages is shared out like the tasks' run time: `python` (Spark's "time to run Python workers"),
`gc`, the state's times, `shuffle` (waits for blocks, writing them), `cpu` beyond `state_update`, which Spark counts
with the rows' way to the operator; each at most what is left. In stages that spilled, what would be `cpu` or waits is
`spill` for as long as so many bytes can take. The rest waits: in a stage that reads, one that writes (the last, or one
that wrote records and no shuffle: an earlier write of `foreachBatch`, or one before a table's commit), or elsewhere
(`waiting`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ledgerops.diagnosis.limits import CLEAR_TIMES, FAR_TIMES, MOSTLY
from ledgerops.model.records import FailedStatement, Progress, StageSummary, TaskSummary

PHASES = ("latest_offset", "get_batch", "query_planning", "wal_commit", "commit_offsets")
DRIVER = ("driver_before", "driver_between", "driver_waits", "after_tasks")
UNEVEN = ("uneven_keys", "uneven_source", "uneven_task", "uneven_executors")
TASKS = ("python", "gc", "state_commit", "state_stall", "state_update", "shuffle", "spill", "cpu", "waiting")
BESIDE = ("slot_wait", "launch", "retries", "many_tasks", "few_rows", "table_scan", "source_wait")
STAGES = ("failed_statements", *BESIDE, *TASKS, "sink_wait", *UNEVEN)
CONTENTION = ("other_queries", "other_processes", "cpu_limit")
PARTS = (*PHASES, *DRIVER, *STAGES, *CONTENTION, "tasks_unknown", "unattributed")

DESCRIBED: Mapping[str, str] = {  # in one sentence each, in the order in which readers see them
    # the source
    "latest_offset": "durationMs.latestOffset: asking the sources for their newest offsets",
    "get_batch": "durationMs.getBatch: asking the sources for the rows of the batch",
    "source_wait": "a stage that reads for another one, while its tasks neither compute nor report what they do",
    # fixed cost
    "query_planning": "durationMs.queryPlanning: planning the batch",
    "wal_commit": "durationMs.walCommit: writing the offsets to the checkpoint before the batch",
    "commit_offsets": "durationMs.commitOffsets: writing to the checkpoint after it",
    "slot_wait": "what would be `driver_before` or `driver_between`, while a stage has been submitted and none of its "
    "tasks runs, if that is half of the batch or more: mostly other tasks have the slots",
    "launch": "what stages take beyond their tasks: starting these and collecting their results",
    "retries": "what would be `launch`, up to the seconds in which attempts of tasks ran that failed: Spark runs these "
    "tasks again",
    "failed_statements": "of durationMs.addBatch, SQL executions that ended with an error, with their stages and the "
    "pause before one that fails with the same exception, while no stage of another one ran",
    "many_tasks": "stages of many tiny tasks, beyond what three tasks for each core would take",
    "few_rows": "what would be `cpu`, in stages with at most 100 rows and 100 kB a task: more rows hardly make it "
    "longer. With a past, no more than computing (`few_rows` and `cpu`) usually takes",
    "table_scan": "what would be `cpu`, `spill` or a wait, in stages that read over 3 times as many rows as the "
    "sources have, and in those that get mostly such rows from a shuffle. After such a stage without a shuffle also "
    "what would be `driver_between`, at most as long as the stage took: the driver gets its rows, as for a broadcast",
    # the driver
    "driver_before": "of durationMs.addBatch, what passes before the first stage",
    "driver_between": "of durationMs.addBatch, what passes between stages while none runs",
    "driver_waits": "without a past, these two of a query with `foreachBatch` whose driver uses, besides tasks, too "
    "little CPU to compute in half of that time, even `stretch_by_<part>` times as long; where the CPU is not known, "
    "over 3 times as long as `query_planning`",
    "after_tasks": "of durationMs.addBatch, what passes after the last stage",
    # tasks
    "python": "the time that Spark reports of Python workers; where it reports none of those in the plan, as behind "
    "`foreachBatch`, waits of tasks that are no known source's, and not of those that write last",
    "gc": "garbage collection of the tasks; in local mode at least the share that the executors' totals show",
    "state_commit": "commitTimeMs of the state operators: saving the state",
    "state_stall": "rocksdbWriterStallLatencyMs of the state operators, in nanoseconds: stalled writes of RocksDB",
    "state_update": "allUpdatesTimeMs and allRemovalsTimeMs of the state operators, less stalls and Python's time",
    "shuffle": "waiting for the blocks of a shuffle, and writing them",
    "spill": "computing and waiting in stages that spilled, at most a second of a task for each 16 MiB of them",
    "cpu": "CPU time of tasks that is in no other part",
    "waiting": "tasks that neither compute nor report what they do, in a stage that neither reads nor writes, or does "
    "both",
    # the sink
    "sink_wait": "a stage that writes, the last one or one that wrote records and no shuffle, while its tasks neither "
    "compute nor report what they do",
    # uneven
    "uneven_keys": "what a stage behind a shuffle takes beyond an even split, where one task has far more rows",
    "uneven_source": "what a stage that reads takes beyond an even split, where one task has far more rows",
    "uneven_task": "what a stage takes longer because one task, or those of one executor, take twice as long as others",
    "uneven_executors": "what a stage takes beyond an even split, where one executor has far too many of its tasks",
    # contention
    "other_queries": "what other queries or jobs of the driver, which have the cores, take of all other parts",
    "other_processes": "what other processes, which have the cores, take of all other parts",
    "cpu_limit": "what the CPU limit of the driver's container takes of all other parts",
    # unknown
    "tasks_unknown": "durationMs.addBatch of batches whose tasks, or those of some of their stages, were not read",
    "unattributed": "the duration less all phases",
}

MAX_READ_STAGES = 8  # of a batch whose recording does not tell whether there were more
PYTHON_OPERATORS = ("pandas", "pyspark", "python")  # in the names of state operators that run Python
STALL = "rocksdbWriterStallLatencyMs"  # nanoseconds, whatever its name says (RocksDBStateStoreProvider, 3.2 to 4.2)

SPILLED_BYTES_PER_SECOND = 16 * 2**20  # of a task, at the least: in the recorded drills three to five times as many
MIN_TASKS_PER_CORE = 10  # of tiny tasks; Spark's tuning guide recommends 2 to 3
ENOUGH_TASKS_PER_CORE = 3
MAX_TINY_SECONDS = 0.25  # Spark's tuning guide still calls 0.2 s efficient; here a task may also commit a state store
MAX_TINY_RECORDS = 500  # per task; with more the work is in the rows
MIN_BLATANT_TASKS_PER_CORE, MAX_BLATANT_RECORDS = 50, 50.0  # so many, with so few rows each, are too many at any pace

FEW_RECORDS = 100  # of a task; with more the work may be in the rows

MAX_EVEN_RATIO = 1.5  # of the largest task's rows over the others' mean, or of an executor's tasks over an even share

Span = tuple[float, float]  # from when to when


class Facts(NamedTuple):
    """What is known of the query beside its batches: `cores` by executor; `alone` is what tasks wait for that both read
    the source and write: `source_wait`, `sink_wait`, or `waiting` where nothing tells; `reading` what those wait for
    that only read. `python`: where Spark reports no time of the plan's Python workers, tasks wait for these."""

    cores: Mapping[str, int]
    alone: str = "waiting"
    reading: str = "source_wait"
    python: bool = False
    sink_waits: bool = True  # False for a sink that keeps nothing

    @property
    def slots(self) -> int | None:
        """Tasks that can run at once; None while no executor was seen."""
        return sum(self.cores.values()) or None


class StageSplit(NamedTuple):
    """The wall seconds of one stage: beyond its tasks, in attempts that failed, for the number of tasks, uneven (with
    the part), and even."""

    stage: StageSummary
    launch: float
    retries: float
    many: float
    uneven_part: str
    uneven: float
    even: float


class Split(NamedTuple):
    """One batch by parts; `stages` has none of the `failed` statements, and is empty where tasks are not known."""

    batch: Progress
    seconds: Mapping[str, float]
    stages: Sequence[StageSplit]
    shares: Mapping[str, float]  # the seconds over the duration
    failed: Sequence[FailedStatement]
    cores: Mapping[str, int]  # by executor

    def worst(self, part: str) -> StageSummary | None:
        """The stage that contributes most to an uneven part; None without one."""
        own = [each for each in self.stages if each.uneven_part == part]
        return max(own, key=lambda each: each.uneven).stage if own else None


def split(batch: Progress, tasks: TaskSummary | None, facts: Facts) -> Split:
    """The batch by parts. A part of which nothing is known is absent."""
    parts, stages = _parts(batch, tasks, facts)
    shares = {part: seconds / batch.duration for part, seconds in parts.items()} if batch.duration > 0 else {}
    return Split(batch, parts, stages, shares, tasks.failed if tasks is not None else (), facts.cores)


def _parts(batch: Progress, tasks: TaskSummary | None, facts: Facts) -> tuple[dict[str, float], tuple[StageSplit, ...]]:
    parts = {phase: max(0.0, batch.phases[phase]) for phase in (*PHASES, "add_batch") if phase in batch.phases}
    total = sum(parts.values())
    if total > batch.duration:  # by rounding
        parts = {phase: seconds * batch.duration / total for phase, seconds in parts.items()}
    parts["unattributed"] = max(0.0, batch.duration - sum(parts.values()))
    adding = parts.pop("add_batch", None)
    if adding is None:
        return parts, ()
    work = _time_of_stages(tasks) if tasks is not None else None
    if tasks is None or work is None:
        return parts | {"tasks_unknown": adding}, ()
    busy = min(work.seconds, adding)
    began = batch.adding_since
    outside = adding - busy
    if tasks.failed:
        whole = _covered([*_spans(tasks), *_tries(tasks)])
        parts["failed_statements"] = min(whole.seconds - work.seconds, outside)
        outside -= parts["failed_statements"]
        work = whole
    after = min(max(0.0, began + adding - work.ended), outside)
    before = min(max(0.0, work.began - began), outside - after)
    between = outside - before - after
    handed = min(between, _handed_over(batch, tasks.stages))
    parts |= {"driver_before": before, "driver_between": between - handed, "after_tasks": after}
    waits = without_slot(batch, tasks)
    if knows_ready(tasks) and seconds_of(waits) >= MOSTLY * batch.duration:
        first = seconds_of(span for span in waits if span[1] <= work.began)
        waited = {
            "driver_before": min(before, first),
            "driver_between": min(between - handed, seconds_of(waits) - first),
        }
        parts |= {name: parts[name] - seconds for name, seconds in waited.items()}
        parts["slot_wait"] = sum(waited.values())
    walls = [stage.wall_seconds or 0.0 for stage in tasks.stages]
    total = sum(walls)
    shares = [wall / total if total > 0 else 1 / len(walls) for wall in walls]
    stages = tuple(_stage(stage, share * busy, facts) for stage, share in zip(tasks.stages, shares, strict=True))
    parts |= _inside(batch, tasks, stages, facts)
    if handed:
        parts["table_scan"] = parts.get("table_scan", 0.0) + handed
    return parts, stages


def reads_again(batch: Progress, stages: Sequence[StageSummary]) -> Sequence[StageSummary]:
    """The stages that read far more rows than all sources of the query have: rows that these did not bring. Empty where
    Spark counted no row of the sources: it cannot be told then whose the rows of a scan are."""
    rows = sum(source.rows * source.times_read for source in batch.sources)
    return [each for each in stages if rows and each.records > FAR_TIMES * rows]


def scans(batch: Progress, stages: Sequence[StageSummary]) -> Sequence[StageSummary]:
    """Those of them that read without a shuffle, and so many that it takes time."""
    return [each for each in reads_again(batch, stages) if not each.reads_shuffle and not _few(each)]


def _handed_over(batch: Progress, stages: Sequence[StageSummary]) -> float:
    """Seconds after scans in which the driver works on the rows that it gets, as on a table that it broadcasts. A scan
    that writes a shuffle gives it none. What takes longer than the scan itself may be something else."""
    seconds, spans = 0.0, [(s.started or 0.0, s.ended or 0.0) for s in stages]
    for scan in scans(batch, stages):
        ended = scan.ended or 0.0
        next_began = min((began for began, until in spans if until > ended), default=ended)
        if not scan.shuffle_write_bytes:
            seconds += min(max(0.0, next_began - ended), scan.wall_seconds or 0.0)
    return seconds


def makes_rows(stage: StageSummary) -> bool:
    """Whether its slowest task writes far more rows than any task of it reads. Of a persisted batch Spark counts
    thousands as one record, of many kilobytes, but ten bytes hold no more than a row."""
    persisted = stage.input_bytes > 10_000 * stage.records
    read = max(stage.records_max, stage.input_bytes / max(1, stage.tasks) / 10 if persisted else 0.0)
    return (stage.slowest_wrote or 0) > max(FEW_RECORDS, FAR_TIMES * read)


def _rows_a_task(stage: StageSummary) -> float:
    """By the mean, and at least one for each kilobyte: a record may be a document, or 10,000 rows of a persisted batch,
    which Spark reads as one."""
    kilobytes = (stage.input_bytes + stage.shuffle_read_bytes) / 1000
    return max(stage.records, kilobytes) / max(1, stage.tasks)


def _few(stage: StageSummary) -> bool:
    return _rows_a_task(stage) <= FEW_RECORDS


class StageTime(NamedTuple):
    """Wall seconds in which at least one stage of a batch was running, and when the first began and the last ended."""

    seconds: float
    began: float
    ended: float


def stage_time(tasks: TaskSummary) -> StageTime | None:
    """The time in which the stages of a batch were running; None unless all of them are known."""
    spans = _spans(tasks)
    whole = len(spans) < MAX_READ_STAGES if tasks.whole is None else tasks.whole
    return _covered(spans) if spans and len(spans) == len(tasks.stages) and whole else None


def _time_of_stages(tasks: TaskSummary) -> StageTime | None:
    """The same; none passes where all that the batch did failed."""
    none_ran = tasks.failed and not tasks.stages and tasks.whole is not False
    return StageTime(0.0, 0.0, 0.0) if none_ran else stage_time(tasks)


def _spans(tasks: TaskSummary) -> list[Span]:
    return [(each.started, each.ended) for each in tasks.stages if each.started is not None and each.ended is not None]


def _tries(tasks: TaskSummary) -> list[Span]:
    """When statements ran that failed, and the function waited to try one again: the next one fails alike, and no stage
    of another one began before it. Of many in a batch only the longest are known by their exceptions."""
    spans, began = [(each.started, each.ended) for each in tasks.failed], [started for started, _ in _spans(tasks)]
    for before, again in pairwise(tasks.failed):
        reasons = {each.error.partition(" ")[0] for each in (before, again) if each.error}
        if len(reasons) <= 1 and not any(before.ended <= at < again.started for at in began):
            spans.append((before.ended, again.started))
    return spans


def _covered(spans: Iterable[Span]) -> StageTime:
    total, first, until = 0.0, float("inf"), float("-inf")
    for started, ended in sorted(spans):
        total += max(0.0, ended - max(started, until))
        first, until = min(first, started), max(until, ended)
    return StageTime(total, first, until)


def without_slot(batch: Progress, tasks: TaskSummary) -> list[Span]:
    """When a stage of a batch was ready and none of its tasks ran; where that is not known, from the start of
    `add_batch` to the first task."""
    waits, until = list[Span](), batch.adding_since
    for place, stage in enumerate(sorted(tasks.stages, key=lambda each: each.started or 0.0)):
        began = min(stage.started or until, batch.ended)
        ready = max(until, stage.submitted or (began if place else until))
        if ready < began:
            waits.append((ready, began))
        until = max(until, stage.ended or until)
    return waits


def seconds_of(spans: Iterable[Span]) -> float:
    """Of all of them together."""
    return sum(until - since for since, until in spans)


def knows_ready(tasks: TaskSummary) -> bool:
    """Whether it is known of each stage since when its tasks could have begun."""
    return all(stage.submitted is not None for stage in tasks.stages)


def _stage(stage: StageSummary, wall: float, facts: Facts) -> StageSplit:
    if facts.slots is None or stage.tasks < 1:
        return StageSplit(stage, 0.0, 0.0, 0.0, "", 0.0, wall)
    many = wall * (1 - ENOUGH_TASKS_PER_CORE * facts.slots / stage.tasks) if _tiny(stage, facts.slots) else 0.0
    wall -= many
    if many or wall <= 0:
        return StageSplit(stage, 0.0, 0.0, many, "", 0.0, wall)
    slots = max(1, min(stage.tasks, facts.slots))
    ran, longest = stage.run_seconds, stage.seconds_max
    needed = longest if stage.tasks <= facts.slots else (ran - longest) / slots + longest
    part, even = _even(stage, slots, facts)
    busiest = _busiest_seconds(stage, facts)
    if busiest is not None and busiest > longest:
        needed, part, even = busiest, "uneven_executors", max(longest, ran / facts.slots)
    needed = min(wall, needed)
    even = min(needed, even) if part else needed
    retries = min(max(0.0, stage.failed_seconds), wall - needed)
    return StageSplit(stage, wall - needed - retries, retries, 0.0, part, needed - even, even)


def _tiny(stage: StageSummary, slots: int) -> bool:
    per_task = _rows_a_task(stage)
    if stage.tasks >= MIN_BLATANT_TASKS_PER_CORE * slots and per_task < MAX_BLATANT_RECORDS:
        return True
    quick = stage.seconds_median <= MAX_TINY_SECONDS and per_task < MAX_TINY_RECORDS
    return stage.tasks >= MIN_TASKS_PER_CORE * slots and quick


def _even(stage: StageSummary, slots: int, facts: Facts) -> tuple[str, float]:
    """What makes the stage uneven, and the wall seconds that it would take without that."""
    ran, longest, count = stage.run_seconds, stage.seconds_max, stage.tasks
    fair = ran / slots
    if count < 2:
        return "", longest
    others = (ran - longest) / (count - 1)
    rows = (stage.records - stage.records_max) / (count - 1)
    if stage.records_max > MAX_EVEN_RATIO * max(1.0, rows):
        enough = stage.records >= 2 * FEW_RECORDS
        part = "uneven_keys" if stage.reads_shuffle else "uneven_source"
        return (part, fair) if enough else ("", longest)
    if longest >= CLEAR_TIMES * others:
        return "uneven_task", max(others, (ran - longest + others) / slots)
    slow = _slow_executor(stage, facts)
    if slow is None:
        return "", longest
    excess, others = slow
    return "uneven_task", max(others, (ran - excess) / slots)


def _busiest_seconds(stage: StageSummary, facts: Facts) -> float | None:
    """Wall seconds that the executor with far more than its share of the tasks needs for them; None without one."""
    if len(facts.cores) < 2 or stage.tasks < len(facts.cores) or not stage.executors:
        return None
    name = max(stage.executors, key=lambda each: stage.executors[each].tasks)
    if name not in facts.cores:
        return None
    share, even = stage.executors[name].tasks / stage.tasks, facts.cores[name] / sum(facts.cores.values())
    uneven = share > MAX_EVEN_RATIO * even
    return stage.executors[name].run_seconds / facts.cores[name] if uneven else None


def _slow_executor(stage: StageSummary, facts: Facts) -> tuple[float, float] | None:
    """Task seconds that the slowest executor takes beyond the others, and what a task takes of these; None where it is
    not twice as slow."""
    known = {name: share for name, share in stage.executors.items() if share.tasks and name in facts.cores}
    if len(known) < 2:
        return None
    slow = max(known, key=lambda name: known[name].run_seconds / known[name].tasks)
    rest = [share for name, share in known.items() if name != slow]
    others = sum(share.run_seconds for share in rest) / sum(share.tasks for share in rest)
    if known[slow].run_seconds < CLEAR_TIMES * others * known[slow].tasks:
        return None
    return known[slow].run_seconds - known[slow].tasks * others, others


def _inside(batch: Progress, tasks: TaskSummary, stages: Sequence[StageSplit], facts: Facts) -> dict[str, float]:
    """The seconds in which stages ran, by part."""
    even = sum(each.even for each in stages)
    parts: dict[str, float] = {}
    if facts.slots is not None:
        parts = dict.fromkeys(UNEVEN, 0.0)
        parts |= {"launch": sum(each.launch for each in stages), "many_tasks": sum(each.many for each in stages)}
        parts["retries"] = sum(each.retries for each in stages)
        for each in stages:
            if each.uneven_part:
                parts[each.uneven_part] += each.uneven
    ran = tasks.run_seconds
    if ran <= 0:
        return parts | {"waiting": even}
    known, left = {}, ran
    for part, seconds in _wanted(batch, tasks).items():
        known[part] = min(max(0.0, seconds), left)
        left -= known[part]
    # the rows of scans, and those stages that get mostly such rows from a shuffle
    most = sum(each.records for each in scans(batch, tasks.stages)) / MOSTLY
    again = (each for each in reads_again(batch, tasks.stages) if each.records <= most and not _few(each))
    scanned = {stage.stage_id for stage in again}
    for part, stage, seconds in _rest(tasks, known.pop("cpu"), left, facts):
        if stage.stage_id in scanned:
            part = "table_scan"
        elif stage.spill_bytes:
            explained = stage.spill_bytes / SPILLED_BYTES_PER_SECOND
            spilling = seconds * (explained / max(explained, stage.run_seconds))  # never more, by rounding either
            known["spill"] = known.get("spill", 0.0) + spilling
            seconds -= spilling
        known[part] = known.get(part, 0.0) + seconds
    return parts | {part: seconds / ran * even for part, seconds in known.items()}


def _wanted(batch: Progress, tasks: TaskSummary) -> dict[str, float]:
    """Task seconds by part, in the order in which they are subtracted; `cpu` is always there."""
    python = min(tasks.python_seconds or 0.0, tasks.run_seconds)
    update = sum(each.update_seconds + each.removal_seconds for each in batch.operators)
    if any(sign in each.name.lower() for each in batch.operators for sign in PYTHON_OPERATORS):
        update = max(0.0, update - python)  # these times contain that of the workers
    wanted = {"python": python} if tasks.python_seconds is not None else {}
    wanted["gc"] = tasks.gc_seconds
    if batch.operators:
        stall = sum(each.custom.get(STALL, 0.0) for each in batch.operators) * 1e-9
        wanted["state_commit"] = sum(each.commit_seconds for each in batch.operators)
        wanted["state_stall"] = stall
        wanted["state_update"] = max(0.0, update - stall)
    shuffled = [stage.shuffle_seconds for stage in tasks.stages if stage.shuffle_seconds is not None]
    if shuffled:
        wanted["shuffle"] = sum(shuffled)
    wanted["cpu"] = tasks.cpu_seconds - wanted.get("state_update", 0.0)
    return wanted


def _rest(tasks: TaskSummary, cpu: float, waiting: float, facts: Facts) -> Iterator[tuple[str, StageSummary, float]]:
    """The task seconds of computing and of waiting by what each stage does."""
    computed = sum(stage.cpu_seconds for stage in tasks.stages)
    idle = {s.stage_id: max(0.0, s.run_seconds - s.cpu_seconds - s.gc_seconds) for s in tasks.stages}
    total = sum(idle.values())
    last = tasks.stages[-1]
    for stage in tasks.stages:
        share = stage.cpu_seconds / computed if computed > 0 else 1 / len(tasks.stages)
        yield "few_rows" if _few(stage) else "cpu", stage, cpu * share
        reads = not stage.reads_shuffle and stage.records > 0
        # rows that go to the driver, as those of a broadcast, are not written
        writes = stage is last or (not stage.shuffle_write_bytes and bool(stage.slowest_wrote))
        part = facts.alone if reads and writes else facts.reading if reads else "sink_wait" if writes else "waiting"
        if facts.python and tasks.python_seconds is None and (part != "sink_wait" or stage is not last):
            part = "python"
        if part == "sink_wait" and not facts.sink_waits:
            part = "waiting"
        yield part, stage, waiting * (idle[stage.stage_id] / total if total > 0 else 1 / len(tasks.stages))
