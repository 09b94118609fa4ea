"""The profile of a batch: which batches are compared, and where the time of a typical one goes, now and usually.

docs/verdict.md says which batches, how a part's seconds come from them, and what contention takes of each part.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import harm
from ledgerops.diagnosis.batch_parts import (
    CONTENTION,
    FEW_RECORDS,
    PARTS,
    PHASES,
    STAGES,
    TASKS,
    UNEVEN,
    Facts,
    Split,
    knows_ready,
    seconds_of,
    split,
    without_slot,
)
from ledgerops.diagnosis.facts import growth, state_cost
from ledgerops.diagnosis.facts.contention import MIN_PYTHON_CORES, Contention, contention, cpu_use
from ledgerops.diagnosis.facts.context import sink_kind, slow_answers, small_files, source_kind
from ledgerops.diagnosis.limits import (
    CLEAR_TIMES,
    FAR_TIMES,
    LOOKBACK_BATCHES,
    MIN_BATCHES,
    MIN_SECONDS,
    MOSTLY,
    SHOWN_BATCHES,
    VERY_LONG_SECONDS,
)
from ledgerops.model.finding import Evidence
from ledgerops.model.finding import Part as ShownPart
from ledgerops.model.records import Host, Progress, TaskSummary
from ledgerops.signals.baseline import RECENT_BATCHES, SAME_RATE_RATIO
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

_at = attrgetter("at")
MAX_REMEMBERED = 128  # splits of batches kept until the next look

OF_FUNCTION = ("driver_before", "driver_between")

# what is the same for any number of rows of a batch; all else is expected to grow with them
FIXED = (*PHASES, "failed_statements", "driver_before", "launch", "many_tasks", "few_rows", "table_scan")
# what is more for more rows: raising a cap on them makes these parts longer, and no other
ON_ROWS = (
    "python", "state_update", "shuffle", "spill", "cpu", "waiting", "source_wait", "sink_wait", "driver_between",
    "after_tasks", "gc", *UNEVEN, "tasks_unknown",
)  # fmt: skip
# what waits for another system rather than for a core, or may
WAITS = (
    "latest_offset", "get_batch", "failed_statements", "slot_wait", "driver_waits", "after_tasks", "retries", "gc",
    "unattributed", "tasks_unknown",
)  # fmt: skip
COMPUTING = ("cpu", "few_rows", "table_scan")
IN_TASKS = (*TASKS, "few_rows", "table_scan", "source_wait", "sink_wait")  # of tasks that run evenly
TASK_WAITS = ("waiting", "source_wait", "sink_wait", "uneven_task")
# of tasks that compute, or wait: for a core as well as for anything else
TASKS_EITHER = ("python", "uneven_keys", "uneven_source", "uneven_executors")
# a stage waits there until another query's tasks end: for all of the time, or as long as it was ready
FOR_SLOTS = ("slot_wait", "launch")
MAYBE_FOR_SLOTS = (*OF_FUNCTION, "driver_waits")


class Part(NamedTuple):
    """Wall seconds of a typical batch that one kind of work takes; `usual` where there is a healthy past, and `more`
    that it needs of the time that more rows may take."""

    name: str
    now: float
    usual: float | None
    more: float = 0.0

    @property
    def allowed(self) -> float:
        """Seconds that are as usual for so many rows; 0 without a past."""
        return (self.usual or 0.0) + self.more

    @property
    def excess(self) -> float:
        """Seconds beyond that."""
        return max(0.0, self.now - self.allowed)


class Profile(NamedTuple):
    """A typical batch. Durations are seconds; `splits` are the batches that it is made of, oldest first."""

    parts: Mapping[str, Part]
    duration: float
    usual_duration: float | None
    splits: Sequence[Split]
    usual_splits: Sequence[Split]
    contention: Contention | None

    @property
    def has_past(self) -> bool:
        """Whether a healthy past says what is usual."""
        return self.usual_duration is not None

    @property
    def at(self) -> float:
        """When the newest of its batches ended, in epoch seconds."""
        return self.splits[-1].batch.ended

    @property
    def knows_tasks(self) -> bool:
        """Whether the tasks of its batches were read."""
        return any(each.stages or each.failed for each in self.splits)

    @property
    def batches(self) -> tuple[int, ...]:
        """The ids of its batches, oldest first."""
        return tuple(each.batch.batch_id for each in self.splits)

    @property
    def usual_batches(self) -> tuple[int, ...]:
        """The ids of those that they are compared with; none without a healthy past."""
        return tuple(each.batch.batch_id for each in self.usual_splits)

    @property
    def stretches(self) -> tuple[Evidence, ...]:
        """How many times as long work takes because of contention; empty where there is none."""
        held = self.contention
        if held is None:
            return ()
        return (
            Evidence(f"stretch_by_{held.part}", held.stretch, "ratio", "as with free cores", self.at),
            Evidence("stretch_of_tasks", held.task_stretch, "ratio", "as with free cores", self.at),
        )

    def now(self, *names: str) -> float:
        """Seconds of these parts together."""
        return sum(self.parts[name].now for name in names if name in self.parts)


@once
def profile(view: QueryView) -> Profile | None:
    """None before there is a settled batch, or a first one that is very long."""
    splits = _chosen(view)
    if not splits:
        return None
    seconds, duration = _typical(splits)
    tasks = any(each.stages or each.failed for each in splits)
    usual_splits = _usual(view, duration, with_tasks=tasks)
    known = bool(usual_splits)
    usual, usual_duration = _typical(usual_splits) if known else ({}, None)
    parts = {name: Part(name, seconds[name], None) for name in PARTS if name in seconds}
    if known:
        parts = dict(_with_past(seconds, usual, _times_the_rows(view, splits, usual_splits)))
    held = contention(view)
    parts = _collected(view, parts, duration)
    if not known and _function_waits(view, parts, splits, held.stretch if held is not None else 1.0):
        waited = sum(parts.pop(name).now for name in OF_FUNCTION)
        parts["driver_waits"] = Part("driver_waits", waited, None)
    if held is not None:
        parts = _contended(parts, held, _computing(view, parts, duration), _for_slots(view, splits))
    return Profile(parts, duration, usual_duration, splits, usual_splits, held)


def _chosen(view: QueryView) -> Sequence[Split]:
    """The batches of `now`, oldest first: with tasks where these are known of enough, else the newest without."""
    late, settled = harm.late_batches(view), view.baseline.settled
    owes = late is not settled
    searched = (late,) if owes else (settled[-2 * SHOWN_BATCHES :], settled[-LOOKBACK_BATCHES:])
    needed = min(_needed(view), len(late)) if owes else _needed(view)
    for batches in _with_and_without_warm_up(view, searched) if _tasks(view) else ():
        found = _split(view, reversed(batches[-LOOKBACK_BATCHES:]), with_tasks=True)
        if len(found) >= needed:
            return found
    newest = late if owes else _with_rows(view)
    if newest:
        return _split(view, reversed(newest), with_tasks=False)
    alone = [batch for batch in view.batches if batch.rows > 0 and batch.duration > VERY_LONG_SECONDS]
    return _split(view, alone, with_tasks=True) or _split(view, alone, with_tasks=False)


def _usual(view: QueryView, duration: float, with_tasks: bool) -> Sequence[Split]:
    """The newest batches of the older half of the healthy past, oldest first: what grows slowly has come into the newer
    half. Where the tasks of hardly any of that past were read, those before the latest that took less than half of the
    time of now, in time or not; none where there are too few."""
    past = view.baseline.usual[-LOOKBACK_BATCHES:]
    known = [batch for batch in past if not with_tasks or batch.batch_id in _tasks(view)]
    found = _split(view, reversed(known[: max(SHOWN_BATCHES, len(known) // 2)]), with_tasks)
    if past and with_tasks and len(found) < MIN_BATCHES:
        older = [batch for batch in view.baseline.steady[-LOOKBACK_BATCHES : -RECENT_BATCHES - 1] if batch.rows > 0]
        found = _split(view, (each for each in reversed(older) if CLEAR_TIMES * each.duration < duration), with_tasks)
    return found if len(found) >= MIN_BATCHES and (with_tasks or not _tasks(view)) else []


def _needed(view: QueryView) -> int:
    """How many batches with tasks it takes to say anything: two, or one that is long or that shows growth.

    Such a batch is proof enough, and waiting for a second one would take too long.
    """
    settled = _with_rows(view)
    if len(settled) >= MIN_BATCHES:
        return MIN_BATCHES
    long = bool(settled) and settled[0].duration > VERY_LONG_SECONDS
    return 1 if long or growth.growth(view) is not None else MIN_BATCHES


@once
def _with_rows(view: QueryView) -> Sequence[Progress]:
    """The newest settled batches with rows, at least as many as are shown, oldest first."""
    newest_first = islice((batch for batch in reversed(view.baseline.settled) if batch.rows > 0), SHOWN_BATCHES + 1)
    return _after_warm_up(view, list(newest_first)[::-1])


def _after_warm_up(view: QueryView, batches: Sequence[Progress]) -> Sequence[Progress]:
    """Without the run's first batch with rows, unless there is no other: it pays for warm-up, and one without rows that
    came before it does not."""
    first = next((batch for batch in view.batches if batch.rows > 0), None)
    return [batch for batch in batches if batch is not first] or batches


def _with_and_without_warm_up(view: QueryView, searched: Iterable[Sequence[Progress]]) -> Iterator[Sequence[Progress]]:
    """Each of them without the batch that pays for warm-up, then whole where it has that batch."""
    for batches in searched:
        settled = _after_warm_up(view, batches)
        yield settled
        if len(settled) < len(batches):
            yield batches


def _split(view: QueryView, newest_first: Iterable[Progress], with_tasks: bool) -> list[Split]:
    known: Mapping[int, TaskSummary] = _tasks(view) if with_tasks else {}
    usable = (batch for batch in newest_first if batch.duration > 0 and (not with_tasks or batch.batch_id in known))
    found = [_remembered(view, batch, known.get(batch.batch_id)) for batch in islice(usable, SHOWN_BATCHES)]
    return found[::-1]


@once
def _tasks(view: QueryView) -> Mapping[int, TaskSummary]:
    """The tasks of the run's batches, by batch id."""
    run = view.history.run_id
    known = (tasks for tasks in view.history.tasks if tasks.stages or tasks.failed)
    return {tasks.batch_id: tasks for tasks in known if tasks.run_id == run}


class _Kept(NamedTuple):
    """The split of a batch, the tasks that it was made of, and whether the executors during it are known for good."""

    tasks: TaskSummary | None
    split: Split
    settled: bool


def _remembered(view: QueryView, batch: Progress, tasks: TaskSummary | None) -> Split:
    """The split of a batch, made once: it changes only when more becomes known."""
    kept = _kept(view)
    made = kept.get(batch.batch_id)
    left = _decommissioned(view).difference(*(stage.executors for stage in tasks.stages) if tasks is not None else ())
    if made is not None and made.tasks is tasks and made.settled and left.isdisjoint(made.split.cores):
        return made.split
    facts, samples = _facts(view), _samples(view)
    cores = _cores_during(view, batch) or (made.split.cores if made is not None else {}) or facts.cores
    cores = {name: count for name, count in cores.items() if name not in left}
    if made is not None and made.tasks is tasks and made.split.cores == cores:
        found = made.split
    else:
        found = split(batch, tasks, facts._replace(cores=cores))
    if made is None and len(kept) >= MAX_REMEMBERED:
        kept.clear()
    kept[batch.batch_id] = _Kept(tasks, found, settled=bool(samples) and samples[-1].at > batch.ended)
    return found


@once
def _kept(view: QueryView) -> dict[int, _Kept]:
    """The splits of the run's batches that earlier looks made, with the tasks that they knew; none once the facts that
    all of them rest on have changed."""
    basis = view.history.run_id, _facts(view)._replace(cores={})
    if view.history.derived.get("basis") != basis:
        view.history.derived = {"basis": basis, "splits": {}}
    kept: dict[int, _Kept] = view.history.derived["splits"]
    return kept


def _cores_during(view: QueryView, batch: Progress) -> Mapping[str, int]:
    """The cores of the executors that were there when the batch began, and still in the newest sample before it ended:
    others could not get their share of its tasks. None where no sample is as old."""
    samples = _samples(view)
    before = bisect_right(samples, batch.started, key=_at)
    if not before:
        return {}
    after = bisect_right(samples, batch.ended, key=_at)
    began, ended = samples[before - 1], samples[after - 1]
    there = {each.executor_id for each in began.workers if each.active}
    return {e.executor_id: e.cores for e in ended.workers if e.active and e.cores > 0 and e.executor_id in there}


@once
def _decommissioned(view: QueryView) -> frozenset[str]:
    """The executors that have left after they were told to: from then on they got no task, though Spark listed them."""
    samples = _samples(view)
    removed = samples[-1].removed_executors if samples else ()
    return frozenset(each.executor_id for each in removed if "decommission" in (each.reason or "").lower())


@once
def _samples(view: QueryView) -> Sequence[Host]:
    """Those in which Spark told its executors, oldest first."""
    return [sample for sample in view.hosts if sample.executors]


def split_of(view: QueryView, batch: Progress) -> Split | None:
    """One batch by parts; None without its tasks."""
    tasks = _tasks(view).get(batch.batch_id)
    return _remembered(view, batch, tasks) if tasks is not None else None


@once
def _facts(view: QueryView) -> Facts:
    cores = {each.executor_id: each.cores for each in view.cluster.executors if each.cores > 0}
    sink, source = sink_kind(view), source_kind(view)
    alone = "waiting"
    if sink == "foreach" or (source == "rate" and sink != "none") or small_files(view) is not None:
        alone = "sink_wait"
    elif sink == "none" or _source_is_slow(view):
        alone = "source_wait"
    reading = "waiting" if source == "rate" else "source_wait"  # it makes its rows itself
    python = bool(view.plan.python) and not _source_is_slow(view)
    return Facts(cores, alone, reading, python, sink_waits=sink != "none" and not python_computes(view))


def python_computes(view: QueryView) -> bool:
    """Whether Python workers use the cores while Spark reports no Python time: tasks wait for them, not for a sink."""
    tasks = view.run.tasks
    use = cpu_use(view) if tasks is None or not tasks.python_seconds else None
    return use is not None and use.cores_by.get("python_workers", 0.0) >= MIN_PYTHON_CORES


def _source_is_slow(view: QueryView) -> bool:
    """Whether the source itself shows that reading waits: its broker answers slowly, or asking it takes far longer."""
    if slow_answers(view) is not None:
        return True
    newest, usual = view.baseline.recent, view.baseline.usual
    now = _asking_seconds(newest) if newest else 0.0
    # of the usual batches there are hundreds: they are looked at only where asking takes long
    return now >= MIN_SECONDS and bool(usual) and now >= FAR_TIMES * _asking_seconds(usual)


def _asking_seconds(batches: Sequence[Progress]) -> float:
    return median(b.phases.get("latest_offset", 0.0) + b.phases.get("get_batch", 0.0) for b in batches)


def _typical(splits: Sequence[Split]) -> tuple[dict[str, float], float]:
    """Median seconds by part, scaled to the median duration, of none more than in any of the batches: the largest share
    of a short batch is not that of a long one."""
    duration = median([each.batch.duration for each in splits])
    taken = [each.shares for each in splits]
    known = set[str]().union(*taken)
    shares = {part: median([each.get(part, 0.0) for each in taken]) for part in PARTS if part in known}
    most = {part: max(each.seconds.get(part, 0.0) for each in splits) for part in shares}
    return _scaled(shares, duration, most), duration


def _scaled(shares: Mapping[str, float], duration: float, most: Mapping[str, float]) -> dict[str, float]:
    """The seconds of each share, at most so many; what that leaves goes to the others, as far as there are any."""
    total = sum(shares.values())
    if total <= 0:
        return {}
    seconds = {part: share / total * duration for part, share in shares.items()}
    full = {part: most[part] for part, taken in seconds.items() if taken > most[part]}
    rest = {part: share for part, share in shares.items() if part not in full}
    if not full or sum(rest.values()) <= 0:
        return seconds
    return full | _scaled(rest, duration - sum(full.values()), most)


def _times_the_rows(view: QueryView, splits: Sequence[Split], usual_splits: Sequence[Split]) -> float:
    """How many times the usual rows a batch has, at least 1; 1 where it has few of them, and because it is long: no
    more come a second."""

    def of(some: Sequence[Split]) -> tuple[float, float]:
        seconds = median(max(each.batch.duration, view.interval) for each in some)
        rows = median(each.batch.rows for each in some)
        return rows, rows / seconds

    (rows, rate), (usual_rows, usual_rate) = of(splits), of(usual_splits)
    if usual_rows <= 0 or (rows <= FEW_RECORDS and rate < SAME_RATE_RATIO * usual_rate):
        return 1.0
    return max(1.0, rows / usual_rows)


def _with_past(seconds: Mapping[str, float], usual: Mapping[str, float], times: float) -> Iterator[tuple[str, Part]]:
    """The parts with their usual seconds, and for so many times the rows as many times more, at most what each takes
    now: what it does not need is no credit for other parts."""
    # what a batch computes beyond the usual is work on its rows, however few: a fixed cost does not grow
    few = usual.get("few_rows", 0.0) + usual.get("cpu", 0.0) * times
    if (heavy := seconds.get("few_rows", 0.0) - few) > 0:
        seconds = {**seconds, "few_rows": few, "cpu": seconds.get("cpu", 0.0) + heavy}
    for name in (each for each in PARTS if each in seconds):
        now, before = seconds[name], usual.get(name, 0.0)
        yield name, Part(name, now, before, 0.0 if name in FIXED else max(0.0, min(now, before * times) - before))


def _collected(view: QueryView, parts: dict[str, Part], duration: float) -> dict[str, Part]:
    """With local mode's one JVM a collection stops the driver, too: its share of all that the driver computes."""
    collected = state_cost.gc_of_executors(view)
    if collected is None or not view.cluster.is_local:
        return parts
    missing = collected * duration - (parts["gc"].now if "gc" in parts else 0.0)
    from_parts = [p for p in parts.values() if p.name not in (*WAITS, *CONTENTION)]
    total = sum(part.now for part in from_parts)
    if missing <= 0 or total <= 0:
        return parts
    taken = min(1.0, missing / total)
    moved = {p.name: p._replace(now=p.now * (1 - taken)) for p in from_parts}
    gc = parts.get("gc", Part("gc", 0.0, 0.0 if from_parts[0].usual is not None else None))
    return parts | moved | {"gc": gc._replace(now=gc.now + taken * total)}


def _computing(view: QueryView, parts: Mapping[str, Part], duration: float) -> float:
    """The share of the tasks' time in which they or Python workers compute; 1 where that is not known."""
    own, inside = (sum(parts[name].now for name in names if name in parts) for names in (COMPUTING, IN_TASKS))
    if "python" in parts and parts["python"].now > 0:
        use = cpu_use(view) if view.cluster.is_local else None
        own += inside if use is None else use.cores_by.get("python_workers", 0.0) * duration
    return min(1.0, own / inside) if inside > 0 else 1.0


def _for_slots(view: QueryView, splits: Sequence[Split]) -> float:
    """Seconds of a batch in which the driver seems to work, and a stage is ready and none of its tasks runs; infinite
    where nothing tells since when stages are ready."""
    tasks = [(each, view.history.tasks_of(each.batch)) for each in splits]
    seconds = [
        seconds_of(without_slot(each.batch, of)) - each.seconds.get("slot_wait", 0.0)
        for each, of in tasks
        if of is not None and knows_ready(of)
    ]
    return median(seconds) if seconds else inf


def _contended(parts: dict[str, Part], held: Contention, computing: float, for_slots: float) -> dict[str, Part]:
    """The parts without what contention explains of each, and that as a part of its own. `computing` is the share
    of the tasks' time in which they compute, `for_slots` the seconds in which stages wait for them in the driver."""
    more, measured = held.stretch - 1, held.part == "cpu_limit"
    computed = sum(parts[name].now for name in COMPUTING if name in parts) * (held.task_stretch - 1)
    taken = {}
    for part in parts.values():
        if part.name in COMPUTING or (held.of_tasks == 1.0 and part.name in STAGES):
            taken[part.name] = 0.0  # seconds on a core, or on another machine
        elif part.name in TASK_WAITS:
            # of tasks that wait for cores, not for something else
            taken[part.name] = min(part.now if measured else part.excess, computed)
            computed -= taken[part.name]
        elif held.part == "other_queries" and part.name in FOR_SLOTS:
            taken[part.name] = part.excess
        elif part.usual and not measured:
            taken[part.name] = min(part.excess, part.allowed * more)
        else:
            taken[part.name] = 0.0 if part.name in WAITS else part.now * more / held.stretch
        if held.part == "other_queries" and part.name in MAYBE_FOR_SLOTS:
            waits = min(part.excess, for_slots)
            taken[part.name], for_slots = max(taken[part.name], waits), for_slots - waits
        if part.name in TASKS_EITHER:
            taken[part.name] = min(taken[part.name], part.now * computing * more)
    rest = {name: part._replace(now=part.now - taken[name]) for name, part in parts.items()}
    past = 0.0 if any(part.usual is not None for part in parts.values()) else None
    return rest | {held.part: Part(held.part, sum(taken.values()), past)}


def _function_waits(view: QueryView, parts: Mapping[str, Part], splits: Sequence[Split], stretch: float) -> bool:
    """Whether the function of `foreachBatch` waits, rather than the driver plans, while no stage runs: all that the
    driver computes in a batch besides tasks, which takes `stretch` times as long, is too little for half of it. Where
    that is not known, as in event logs, planning the query takes far less: what the function writes takes about as long
    to plan."""
    if sink_kind(view) != "foreach_batch" or any(name not in parts for name in OF_FUNCTION):
        return False
    use, planned, taken = cpu_use(view), parts.get("query_planning"), sum(parts[name].now for name in OF_FUNCTION)
    if use is None:
        return planned is not None and taken > FAR_TIMES * planned.now
    cores = sum(use.cores_by.get(role, 0.0) for role in ("driver_jvm", "driver_python"))
    of_tasks = 0.0
    if view.cluster.is_local:
        of_tasks = median(sum(stage.stage.cpu_seconds for stage in each.stages) for each in splits)
    computed = cores / (view.trigger.busy_ratio or 1.0) * median(each.batch.duration for each in splits)
    return stretch * (computed - of_tasks) < MOSTLY * taken


def on_rows(found: Profile) -> float:
    """Seconds of a batch that more rows would make longer; none where it has so few that they hardly matter."""
    rows = max(each.batch.rows for each in found.splits)
    return 0.0 if rows <= FEW_RECORDS else found.now(*ON_ROWS)


def shown(found: Profile | None) -> tuple[ShownPart, ...]:
    """The parts in their order, with their share of the batch; none before there is a batch."""
    if found is None or found.duration <= 0:
        return ()
    ordered = [found.parts[name] for name in PARTS if name in found.parts]
    return tuple(ShownPart(each.name, each.now, each.now / found.duration) for each in ordered)
