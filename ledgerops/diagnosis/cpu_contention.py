"""Who uses the cores: the machine's processes, and the queries of one driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ledgerops.diagnosis import strain
from ledgerops.model.history import History
from ledgerops.model.records import Host
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_SPAN_SECONDS = 4.0  # between two compared samples of the machine: less is noise
MAX_AGE_SECONDS = 25.0  # with one sample every 10 s the newest is younger
# share of the time in garbage collection from which it is what slows the query down: it stops all threads
MIN_GC_SHARE = 0.2

# whether all slots are taken
OTHERS_SHARE = 0.35  # of the cores that others must use to hold up a query
NEWEST_SAMPLES = 5  # of the executors, most of which must show that all slots are taken

# a query that takes the cores
MIN_OFFENDER_SHARE = 0.4  # of all cores: two queries that share them evenly take half each, and hold up each other
MIN_TIMES_OWN = 1.5  # times what the query itself takes, and what the other one took before
MIN_TAKEN_SHARE = 0.75  # of all cores, taken by all queries together unless the machine is busy: else no query waits
BEFORE_SECONDS = 60.0  # before the strain, which show what the other query used to take
MIN_SLOWDOWN = 1.5  # how much longer the query takes for its rows
MIN_BUSY_SHARE = 0.85  # of all cores of the machine

# batches that wait for their first task while another query holds the slots
MIN_WAITS = 2
MAX_WAITS = 5
WAIT_LOOKBACK_BATCHES = 30  # newest batches; the tasks of some of them are read
MIN_WAIT_SHARE = 0.5  # of a batch
MIN_WAIT_SECONDS = 1.0
MIN_HELD_SHARE = 0.8  # of the waiting; the rest is planning

OTHER = "other processes"
ROLES = {"driver_python": "the driver's Python", "driver_jvm": "the driver's JVM", "python_workers": "Python workers"}


class CpuUse(NamedTuple):
    """CPU use of the driver's machine between two samples. `cores_by` says who uses how many."""

    at: float
    seconds: float
    cores: int
    busy: float  # share of all cores
    cores_by: Mapping[str, float]

    @property
    def heaviest(self) -> str:
        """Who uses the most cores."""
        return max(self.cores_by, key=lambda who: self.cores_by[who])

    @property
    def own(self) -> Mapping[str, float]:
        """What the application's own processes use, in cores."""
        return {who: cores for who, cores in self.cores_by.items() if who != OTHER}


@once
def cpu_use(view: QueryView) -> CpuUse | None:
    """CPU use since the newest sample at least MIN_SPAN_SECONDS before the last; None without two recent samples."""
    samples = [sample for sample in view.hosts if sample.at <= view.now and sample.cpu_busy_ratio is not None]
    if len(samples) < 2 or samples[-1].at < view.now - MAX_AGE_SECONDS:
        return None
    newest = samples[-1]
    base = next(
        (place for place in range(len(samples) - 2, -1, -1) if newest.at - samples[place].at >= MIN_SPAN_SECONDS), None
    )
    if base is None or not newest.cpu_count:
        return None
    steps = [(b.at - a.at, b.cpu_busy_ratio or 0.0) for a, b in zip(samples[base:-1], samples[base + 1 :], strict=True)]
    seconds = newest.at - samples[base].at
    busy = sum(span * ratio for span, ratio in steps) / seconds
    by = _by_role(samples[base], newest, seconds)
    by[OTHER] = max(0.0, busy * newest.cpu_count - sum(by.values()))
    return CpuUse(newest.at, seconds, newest.cpu_count, busy, by)


def _by_role(before: Host, after: Host, seconds: float) -> dict[str, float]:
    first = {process.role: process.cpu_seconds for process in before.processes}
    return {
        name: max(0.0, process.cpu_seconds - first.get(role, 0.0)) / seconds
        for role, name in ROLES.items()
        for process in after.processes
        if process.role == role
    }


def gc_share(view: QueryView, executor: str | None = None) -> float:
    """Share of the time of the latest batches that the executors (or one of them; `driver` is the driver's JVM, which
    runs the tasks of a local master) spent in garbage collection; 0 without samples."""
    since = view.baseline.recent_since
    if since is None:
        return 0.0
    samples = [each for each in view.hosts if since - MIN_SPAN_SECONDS <= each.at <= view.now and each.executors]
    if len(samples) < 2 or samples[-1].at <= samples[0].at:
        return 0.0
    before, after = (
        sum(
            each.gc_seconds
            for each in (sample.executors if executor else sample.workers)
            if executor in (None, each.executor_id)
        )
        for sample in (samples[0], samples[-1])
    )
    return (after - before) / (samples[-1].at - samples[0].at)


def cores_per_batch_second(history: History, since: float, until: float) -> float | None:
    """Cores that the tasks of a query use in a second of its batches: of those that ended between two instants and have
    tasks, else of the newest one before."""
    ran = spent = 0.0
    for batch in reversed(history.run):
        if batch.ended > until or batch.duration <= 0:
            continue
        if batch.ended < since and spent:
            break
        tasks = history.tasks_of(batch)
        if tasks is not None and tasks.stages:
            ran += tasks.run_seconds
            spent += batch.duration
    return ran / spent if spent else None


def _spans(history: History, since: float, until: float, running: bool = True) -> list[tuple[float, float]]:
    """From when to when its batches ran that touch the time between two instants, with the one that runs now."""
    spans = [(each.started, each.ended) for each in history.run if each.ended >= since and each.started <= until]
    if running and history.running is not None and history.running.since < until:
        spans.append((max(history.running.since, history.last_progress or 0.0), until))
    return spans


def cores_taken(history: History, since: float, until: float, earlier: bool = False) -> float | None:
    """Cores that a query's tasks use between two instants; with `earlier` by what it did before `until` only.

    Its tasks are read of some batches only; the others, and the one that runs now, count with what these use.
    """
    spans = _spans(history, since, until, running=not earlier)
    if not spans or until <= since:
        return 0.0
    rate = cores_per_batch_second(history, since, until)
    if rate is None:
        return None
    busy = sum(max(0.0, min(end, until) - max(start, since)) for start, end in spans)
    return rate * min(1.0, busy / (until - since))


@once
def slots_taken(view: QueryView) -> bool:
    """Whether tasks had every slot in most of the newest samples of the executors, and those of other queries a good
    part of them; tasks that sleep hold a slot, too, on a machine with free cores."""
    width, full = view.cluster.cores, _full_slots(view)
    if not width or not sum(full) > len(full) / 2:
        return False
    since = _newest_samples(view)[0].at
    others = (cores_taken(other, since, view.now) or 0.0 for other in view.others if other.ended is None)
    return sum(others) >= OTHERS_SHARE * width


def _newest_samples(view: QueryView) -> Sequence[Host]:
    return list(view.hosts)[-NEWEST_SAMPLES:]


def _full_slots(view: QueryView) -> list[bool]:
    """Of each of the newest samples of the executors whether tasks had every slot."""
    samples = [[each for each in host.executors if each.active and each.cores] for host in _newest_samples(view)]
    return [sum(e.active_tasks for e in sample) >= sum(e.cores for e in sample) for sample in samples if sample]


class Offender(NamedTuple):
    """Another query of the driver that takes the cores. Figures are in cores."""

    query: str
    takes: float
    took: float | None  # before; None when it was not there
    own: float
    slots: int
    since: float
    holds: bool = False  # its tasks had the slots while batches of this query waited for their first task


@once
def offender(view: QueryView) -> Offender | None:
    """The query that holds up this one: it takes most of the cores, more than it used to, while this one, at no more
    rows than usual, needs much longer for them. Without a past, all slots must be taken. Or its batches ran whenever
    this one's waited for their first task."""
    if not view.others:
        return None
    holder = _holder(view)
    if holder is None and not strain.strained(view):
        return None
    lost, width = view.baseline.slowdown, view.cluster.cores
    slower = holder is not None or (lost.factor >= MIN_SLOWDOWN if lost is not None else slots_taken(view))
    newest = view.baseline.recent or view.batches[-1:]
    if not width or not newest or not slower:
        return None
    since, until = newest[0].started, view.now
    own = cores_taken(view.history, since, until)
    if own is None:
        return None
    all_taken, found = own, []
    for other in view.others:
        if other.ended is not None and other.ended.at < since:
            continue
        takes = cores_taken(other, since, until)
        if takes is None:
            continue
        all_taken += takes
        if other.query == holder:
            return Offender(other.query, takes, None, own, width, since, holds=True)
        took = _before(other, view)
        if takes >= max(MIN_OFFENDER_SHARE * width, MIN_TIMES_OWN * own, MIN_TIMES_OWN * (took or 0.0)):
            found.append(Offender(other.query, takes, took, own, width, since))
    worst = max(found, key=lambda each: each.takes, default=None)
    use = cpu_use(view)
    contended = all_taken >= MIN_TAKEN_SHARE * width or (use is not None and use.busy >= MIN_BUSY_SHARE)
    return worst if contended else None


def _holder(view: QueryView) -> str | None:
    """The query whose batches ran in nearly all of the time in which this one's waited for their first task."""
    width = view.cluster.cores
    waits = _waits(view)
    if not width or len(waits) < MIN_WAITS or waits[0][1] < view.now - MAX_AGE_SECONDS:
        return None
    slots = _full_slots(view)
    if len(slots) == NEWEST_SAMPLES and not any(slots):
        return None
    total = sum(until - since for since, until in waits)
    for other in view.others:
        rate = cores_per_batch_second(other, waits[-1][0], view.now)
        if rate is None or rate < MIN_TAKEN_SHARE * width:
            continue
        spans = _spans(other, waits[-1][0], view.now)
        held = sum(max(0.0, min(b, until) - max(a, since)) for since, until in waits for a, b in spans)
        if held >= MIN_HELD_SHARE * total:
            return other.query
    return None


def _waits(view: QueryView) -> list[tuple[float, float]]:
    """From the start of `add_batch` to the first task, newest first, of batches that mostly wait so."""
    found = []
    for batch in reversed(view.baseline.settled[-WAIT_LOOKBACK_BATCHES:]):
        tasks = view.history.tasks_of(batch)
        if tasks is None or "add_batch" not in batch.phases:
            continue
        began = batch.ended - batch.phases.get("commit_offsets", 0.0) - batch.phases["add_batch"]
        first = min((stage.started for stage in tasks.stages if stage.started is not None), default=began)
        if first - began >= MIN_WAIT_SHARE * batch.duration:
            found.append((began, min(first, batch.ended)))
            if len(found) == MAX_WAITS:
                break
        elif batch.duration > MIN_WAIT_SECONDS:
            break  # it waits no longer, or did not yet
    return found


def _before(other: History, view: QueryView) -> float | None:
    """What the other query took while this one had its usual batches."""
    usual = view.baseline.usual
    if not usual:
        return None
    until = usual[-1].ended
    since = max(usual[0].started, until - BEFORE_SECONDS)
    if not any(since <= batch.ended <= until for batch in other.run):
        return None
    return cores_taken(other, since, until, earlier=True)
