"""Who else has the cores that a query wants, and how much longer its work takes for it.

`stretch` is how many times as long work on a CPU takes: by the phases that take the same few tenths of a second in
every batch on a free machine, or by the share of the cores that other processes leave: then it explains growth up to
that factor and nothing beyond it. What a CPU limit holds back is measured, and explains what is usual, too.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from statistics import median
from typing import Literal, NamedTuple

from ledgerops.diagnosis.facts.neighbours import Neighbour, crowd, neighbour
from ledgerops.diagnosis.harm import examined, harm, judged
from ledgerops.diagnosis.limits import FAR_TIMES, LOOKBACK_BATCHES, MAX_SAMPLE_AGE_SECONDS, MOSTLY, NEARLY_ALL
from ledgerops.model.finding import Evidence
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import CHANGED_RATIO, Slowdown
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_SPAN_SECONDS = 4.0  # between two compared samples of the machine: less is noise
MIN_BUSY_SHARE = 0.9  # of all cores; a query that runs back to back on half of them stays far below
MIN_OTHERS_SHARE = 0.25  # of all cores, used by other processes: less does not explain a slowdown
MIN_RUN_SECONDS = 60.0  # of a query of which neither a past nor the pressure is known: its start is slow
MIN_OWN_SHARE = 0.1  # of the cores, that a query gets at least where threads take turns
MIN_PHASE_SECONDS = 0.05  # the ratio of a shorter time is chance
LOGS = ("wal_commit", "commit_offsets")  # they and planning take as long whatever the rows of a batch
MIN_PYTHON_CORES = 0.3  # of Python that computes rather than waits
FIXED_SECONDS = 0.4  # that they take together on a free machine, at most

OTHER, LIMIT = "other processes", "CPU limit"

# of its evidence; the newest batches are at most 5, of a query that owes time late ones
FORMULAS: Mapping[str, str] = {
    "neighbour_cores": "cores that the tasks of the other query, or of all others together, use while the newest "
    "batches of this one run: run_seconds divided by the seconds of the batches whose tasks were read, times the share "
    "of the time in which it has a batch; of a job that belongs to no watched query all slots, since each look at the "
    "executors shows them taken while a stage of this query is ready and none of its tasks runs",
    "own_cores": "the same of this query, by the tasks of its batches",
    "slots": "cores of the active executors",
    "usual_neighbour_cores": "neighbour_cores during the last minute of the usual batches of this query, or since the "
    "last batch of the other query that had ended by then began, if that is longer ago",
    "late_queries": "other queries that outlast their interval, and whose tasks compute for half of their time or more",
    "slowdown_at_equal_rows": "median duration of the newest batches divided by the usual one, and by their rows over "
    "the usual where these are more",
    "task_cpu_share": "median over the newest batches of cpu_seconds / run_seconds of their tasks",
    "cpu_busy_ratio": "busy share of all cores since the newest sample at least 4 s before the last",
    "cores_of_other_processes": "busy cores in that time less those of the driver's Python, JVM and Python workers",
    "cpu_pressure_ratio": "the smaller of the newest two samples of Linux PSI: the share of time in which some thread "
    "waits for a core",
    "cores_allowed": "the CPU limit of the driver's container",
    "cores_held_back": "seconds, summed over CPUs, in which the container held back threads because the limit was used "
    "up, by the second, since the newest sample at least 4 s before the last",
    "own_cores_used": "cores that the driver's Python, JVM and Python workers used in that time",
}


class Contention(NamedTuple):
    """What takes the cores: `part` of the profile that it fills, who, and how much longer work takes."""

    part: Literal["other_queries", "other_processes", "cpu_limit"]
    who: str
    stretch: float
    since: float
    summary: str
    evidence: tuple[Evidence, ...]
    of_tasks: float | None = None  # the same of tasks, where it differs: 1 where they run on other machines

    @property
    def task_stretch(self) -> float:
        """How many times as long a task takes that computes."""
        return self.stretch if self.of_tasks is None else self.of_tasks


class CpuUse(NamedTuple):
    """CPU use of the driver's machine between two samples. `cores_by` says who uses how many; `held_back` are those
    that the application would use if its container had no CPU limit."""

    at: float
    cores: int
    busy: float  # share of all cores
    cores_by: Mapping[str, float]
    held_back: float = 0.0

    @property
    def used(self) -> float:
        """What the application's own processes use, in cores."""
        return sum(cores for who, cores in self.cores_by.items() if who != OTHER)

    @property
    def wanted(self) -> float:
        """What they would use without a CPU limit, in cores."""
        return self.used + self.held_back

    @property
    def full(self) -> bool:
        """Whether hardly any core is free."""
        return self.busy >= MIN_BUSY_SHARE

    @property
    def others_share(self) -> float:
        """What other processes use of all cores, 0 to 1."""
        return self.cores_by[OTHER] / self.cores


@once
def cpu_use(view: QueryView) -> CpuUse | None:
    """CPU use since the newest sample at least MIN_SPAN_SECONDS before the last; None without two recent samples."""
    samples = [sample for sample in view.hosts if sample.cpu_busy_ratio is not None]
    newest = samples[-1] if samples else None
    if newest is None or not newest.cpu_count or newest.at < view.now - MAX_SAMPLE_AGE_SECONDS:
        return None
    places = range(len(samples) - 2, -1, -1)
    base = next((place for place in places if newest.at - samples[place].at >= MIN_SPAN_SECONDS), None)
    if base is None:
        return None
    seconds = newest.at - samples[base].at
    busy = sum((b.at - a.at) * (b.cpu_busy_ratio or 0.0) for a, b in pairwise(samples[base:])) / seconds
    first = {process.role: process.cpu_seconds for process in samples[base].processes}
    by: dict[str, float] = {
        process.role: max(0.0, process.cpu_seconds - first.get(process.role, 0.0)) / seconds
        for process in newest.processes
    }
    by[OTHER] = max(0.0, busy * newest.cpu_count - sum(by.values()))
    before, after = samples[base].cpu_held_back_seconds, newest.cpu_held_back_seconds
    held_back = 0.0 if before is None or after is None else max(0.0, after - before)
    return CpuUse(newest.at, newest.cpu_count, busy, by, held_back / seconds)


@once
def contention(view: QueryView) -> Contention | None:
    """What takes the cores that the query wants: another query or job, a limit, other processes, or several queries."""
    found = neighbour(view)
    if found is not None:
        return _by_query(view, found)
    if not examined(view):
        return None
    return _by_limit(view) or _by_processes(view) or _by_crowd(view) or _unsampled(view)


def _by_query(view: QueryView, found: Neighbour) -> Contention:
    verb = "take" if found.several else "takes"
    lost = None if found.holds else view.baseline.slowdown_of(judged(view))
    took = "" if found.took is None else f", {found.took:.1f} before"
    at = view.now
    evidence = [
        Evidence("neighbour_cores", found.takes, "cores", "fewer", at),
        Evidence("own_cores", found.own, "cores", "more", at),
        Evidence("slots", float(found.slots), "cores", "more than both need", at),
    ]
    if found.took is not None:
        evidence.append(Evidence("usual_neighbour_cores", found.took, "cores", "as now", at))
    if lost is not None:
        evidence.append(_slowdown(view, lost))
    return Contention(
        "other_queries",
        found.query,
        lost.factor if lost is not None else 1.0,
        found.since,
        f"{found.query} {verb} {found.takes:.1f} of {found.slots} cores{took}",
        tuple(evidence),
    )


def _by_limit(view: QueryView) -> Contention | None:
    """The container's CPU limit: once it is used up, all threads wait for the next period of it.

    With N runnable threads and a limit of L cores, each works for L / N of the time and is held back for the rest, so
    work takes N / L times as long: what would be used, over what is.
    """
    use, limit = cpu_use(view), view.hosts[-1].cpu_limit_cores if view.hosts else None
    if use is None or limit is None or use.used <= 0:
        return None
    stretch = use.wanted / use.used
    if stretch < CHANGED_RATIO:
        return None
    evidence = (
        Evidence("cores_allowed", limit, "cores", f">= {limit + use.held_back:.1f}", use.at),
        Evidence("cores_held_back", use.held_back, "cores", "~ 0", use.at),
        Evidence("own_cores_used", use.used, "cores", "below the limit", use.at),
    )
    may = "1 core" if limit == 1 else f"{round(limit, 2):g} cores"
    words = f"the container may use {may}, and holds back threads that would use {use.held_back:.1f} more"
    # tasks take turns with the threads of the driver and the collector, and how many want a core is not known
    of_tasks = max(stretch, 1 / MIN_OWN_SHARE) if view.cluster.is_local else 1.0
    return Contention("cpu_limit", LIMIT, stretch, _since(view), words, evidence, of_tasks)


def _by_processes(view: QueryView) -> Contention | None:
    """Other processes have a good part of a machine without a free core."""
    use, lost = cpu_use(view), view.baseline.slowdown_of(judged(view))
    if use is None or not use.full or use.others_share < MIN_OTHERS_SHARE:
        return None
    stretch, pressed = _stretch(view), pressure(view)
    of_tasks = stretch
    if lost is None:  # alone it would have all cores, so its work takes no longer than by the share that is left
        of_tasks = 1 / max(MIN_OWN_SHARE, 1 - use.others_share)
        stretch = min(stretch, of_tasks)
    others = use.cores_by[OTHER]
    evidence = [
        Evidence("cpu_busy_ratio", use.busy, "ratio", f"< {MIN_BUSY_SHARE:g}", use.at),
        Evidence("cores_of_other_processes", others, "cores", f"< {MIN_OTHERS_SHARE * use.cores:g}", use.at),
    ]
    if lost is None:
        young = view.now - view.batches[0].started < MIN_RUN_SECONDS
        if harm(view) is None or use.others_share < MOSTLY or (pressed is None and young):
            return None
    else:
        evidence.append(_slowdown(view, lost))
    if pressed is not None:
        evidence.append(pressed)
    if of_tasks < CHANGED_RATIO:
        return None
    waits = f"; threads wait for a core {pressed.value:.0%} of the time" if pressed is not None else ""
    words = f"other processes use {others:.1f} of {use.cores} cores, {use.busy:.0%} are busy{waits}"
    return Contention("other_processes", OTHER, stretch, _since(view), words, tuple(evidence), of_tasks)


def _by_crowd(view: QueryView) -> Contention | None:
    """As many other queries as there are cores outlast their interval and use the cores, and this one's work takes
    longer than it should."""
    late, stretch = crowd(view), _stretch(view)
    if view.cluster.cores is None or len(late) < view.cluster.cores or stretch < CHANGED_RATIO:
        return None
    evidence = (Evidence("late_queries", float(len(late)), "count", f"< {view.cluster.cores}", view.now),)
    words = f"{len(late)} other queries outlast their intervals on the same {view.cluster.cores} cores"
    return Contention("other_queries", f"{len(late)} other queries", stretch, _since(view), words, evidence)


def _unsampled(view: QueryView) -> Contention | None:
    """An event log has no figures of the machine: there, all of a batch takes longer, and its tasks wait for a core.

    Tasks that wait for a service have grown alone, and those that have more to do compute.
    """
    lost = view.baseline.slowdown_of(judged(view))
    if lost is None or any(sample.cpu_busy_ratio is not None for sample in view.hosts):
        return None
    now, before = (_task_cpu(view, batches) for batches in (judged(view), view.baseline.usual[-LOOKBACK_BATCHES:]))
    more_rows = max(1.0, lost.rows / lost.usual_rows)
    stretch = _stretch(view)
    if now is None or before is None or stretch < CHANGED_RATIO:
        return None
    if now[1] > MOSTLY or now[0] > CHANGED_RATIO * before[0] * more_rows:
        return None
    at = view.batches[-1].ended
    evidence = (_slowdown(view, lost), Evidence("task_cpu_share", now[1], "ratio", f"> {MOSTLY:g}", at))
    share = f"{now[1]:.0%} of their time"
    words = f"all parts of a batch take longer, and its tasks compute for {share}: they wait for cores"
    return Contention("other_processes", "what else runs on the machine", stretch, _since(view), words, evidence)


def _task_cpu(view: QueryView, batches: Sequence[Progress]) -> tuple[float, float] | None:
    """Medians over batches: CPU seconds of their tasks, and the share of the tasks' time that they computed."""
    known = [tasks for batch in batches if (tasks := view.history.tasks_of(batch)) is not None and tasks.run_seconds]
    if len(known) < 2:
        return None
    return median(each.cpu_seconds for each in known), median(each.cpu_seconds / each.run_seconds for each in known)


@once
def _stretch(view: QueryView) -> float:
    """How many times as long work on a CPU takes as on a free machine.

    Missing cores slow down all of a batch: with a past it is the smaller of what the whole batch lost at equal rows and
    what its fixed phases lost; without one, the fixed phases against what they take on a free machine.
    """
    lost, usual = view.baseline.slowdown_of(judged(view)), view.baseline.usual
    # planning waits for nothing but a core: of logs that take far longer, their storage takes the rest
    now = _fixed(judged(view), FAR_TIMES)
    if lost is None:
        return max(1.0, now / FIXED_SECONDS)
    return max(1.0, min(lost.factor, now / max(_fixed(usual), MIN_PHASE_SECONDS)))


def _fixed(batches: Sequence[Progress], most_logs: float = inf) -> float:
    """What they take that is the same for any rows, of the logs at most so many times as long as planning."""
    planned = [batch.phases.get("query_planning", 0.0) for batch in batches]
    logged = [sum(batch.phases.get(phase, 0.0) for phase in LOGS) for batch in batches]
    seconds = [plan + min(logs, most_logs * plan) if plan else logs for plan, logs in zip(planned, logged, strict=True)]
    return median(seconds) if seconds else 0.0


def _since(view: QueryView) -> float:
    return judged(view)[0].started if judged(view) else view.now


def _slowdown(view: QueryView, lost: Slowdown) -> Evidence:
    return Evidence("slowdown_at_equal_rows", lost.factor, "ratio", f"< {CHANGED_RATIO:g}", view.batches[-1].ended)


def pressure(view: QueryView) -> Evidence | None:
    """How far threads wait for a core, by the less of the newest two samples; None where they do not, or none says."""
    shares = [sample.cpu_pressure_ratio or 0.0 for sample in list(view.hosts)[-2:]]
    if not shares or min(shares) < NEARLY_ALL:
        return None
    return Evidence("cpu_pressure_ratio", min(shares), "ratio", f"< {NEARLY_ALL:g}", view.hosts[-1].at)
