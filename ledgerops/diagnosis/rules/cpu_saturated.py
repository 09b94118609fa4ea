"""CPU saturated: all cores of the driver's machine are busy, and batches take longer because of it.

Meaning: batches need much longer for the same number of rows while hardly any core is free. Either other processes use
    the machine, or the work of the query itself has become more expensive.
Impact: everything that the query does takes longer, including planning and commits, and it falls behind.
Diagnosis: 1. Read in the finding who uses most cores, or compare `rate(ledgerops_process_cpu_seconds_total[5m])` by
    `kind` with `ledgerops_host_cpu_busy_ratio`. What the driver and its workers do not use is used by other processes.
    2. If other processes use the cores, `top -o %CPU` on the driver's machine names them.
    3. If Python workers use the cores, a user-defined function is expensive: see `python-bound`. If the driver's JVM
    does, the tasks themselves fill the cores: see `input-overload` and `gc-pressure`.
Mitigation: move the other processes, or give the driver cores that nothing else may use. For Python workers, vectorise
    the function or write it with Spark's own functions. For the JVM, add cores, at most as many as there are tasks, or
    run fewer queries in this driver.
Evidence:
    cpu_busy_ratio: mean of the samples' cpu_busy_ratio, weighted by the time since the previous sample. The samples are
        those after the newest one that is at least 4 s older than the last.
    cores_of_the_heaviest: cores that the named user of CPU has used since then: growth of its cpu_seconds divided by
        the time. For other processes: cpu_busy_ratio times cpu_count, minus what the roles use.
    slowdown_at_equal_rows: median duration of the latest 3 batches with rows, divided by that of the usual batches. If
        the latest batches have more rows, the usual duration is first multiplied by the ratio of the median rows.
    planning_slowdown: median of durationMs.queryPlanning of the latest 3 batches, divided by that of the usual ones (at
        least 0.05 s).
    cpu_pressure_ratio: the smaller cpu_pressure_ratio of the newest two samples; given without usual batches.
    runnable_threads: the same of their runnable_threads, where no pressure is recorded.
    task_cpu_share: where the machine was not sampled: median over P of the sum of cpu_seconds of the stages divided by
        the sum of their run_seconds. P = the newest 5 batches whose tasks were read, without the first batch of the
        run; if 2 or more in a row up to now take longer than 1.1 times the interval, only those
"""

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from ledgerops.common.format import counted
from ledgerops.diagnosis import batch_time, cpu_contention, harm, stretch
from ledgerops.diagnosis.criteria import VERY_LONG_SECONDS
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES, Slowdown
from ledgerops.signals.query_view import QueryView

MIN_BUSY_SHARE = 0.9  # of all cores; a query that runs back to back on half of them stays far below
MIN_SLOWDOWN = 1.5  # at equal rows; six queries that start together on two cores slow each other down by less
MAX_MORE_CPU = 1.5  # CPU time of the tasks over the usual, at equal rows: above it they have more to do
MAX_STARVED_CPU_SHARE = 0.4  # of the time of tasks that wait for a core
MIN_FOREIGN_SHARE = 0.25  # of all cores, used by other processes: less does not explain a slowdown
MIN_RUN_SECONDS = 60.0  # of the query so far: everything is slow at its start
MIN_MOSTLY_FOREIGN_SHARE = 0.5  # of all cores, where no past shows how much slower the query became
# of all cores, used by the driver and its workers: tasks that sleep also fill the slots, but need no core
MIN_OWN_SHARE = 0.6
MIN_FILLED_SHARE = 0.8  # of the slots while the query's stages run: its own tasks need the cores
MIN_PRESSURE_SHARE = 0.8  # of the time in which some thread waits for a core (Linux PSI)
PRESSED_SAMPLES = 2  # newest samples, all of which must show it
MIN_QUEUED_PER_CORE = 4  # threads that run or wait, where PSI is not recorded
FIXED_PHASES = ("query_planning", "wal_commit", "commit_offsets")  # take as long whatever the rows of a batch
FIXED_SECONDS = 0.4  # that they take together on a free machine, at most
MIN_COMPUTING_SHARE = 0.5  # of a batch in which its stages run, and of that time in which its tasks compute
REMEDIES = {
    cpu_contention.OTHER: Remedy(
        "find the processes and move them, or give the driver cores of its own",
        "the query can only use the cores that they leave free",
        command="top -o %CPU",
    ),
    cpu_contention.ROLES["python_workers"]: Remedy(
        "make the user-defined functions vectorised, or use Spark's own functions",
        "the Python workers use most of the busy cores",
        safe=False,
    ),
    cpu_contention.ROLES["driver_jvm"]: Remedy(
        "add cores, or move queries to another driver", "the tasks use all cores of this one", safe=False
    ),
    cpu_contention.ROLES["driver_python"]: Remedy(
        "move the work out of the driver's Python", "it blocks the threads that start batches and tasks", safe=False
    ),
}


def check(view: QueryView) -> Iterator[Finding]:
    use, lost = cpu_contention.cpu_use(view), view.baseline.slowdown
    if view.last is None and use is not None:
        yield from _first_batch(view, use)
    if view.last is None or not harm.examined(view):
        return
    if lost is None and use is not None and harm.harm(view) is not None:
        yield from _from_birth(view, use)
    if lost is not None and all(sample.cpu_busy_ratio is None for sample in view.hosts):
        yield from _not_sampled(view, lost)
    if (
        use is None
        or lost is None
        or use.busy < MIN_BUSY_SHARE
        or lost.factor < MIN_SLOWDOWN
        or cpu_contention.gc_share(view) >= cpu_contention.MIN_GC_SHARE
    ):
        return
    stretched = stretch.of_phase(view, "query_planning")
    foreign = use.cores_by[cpu_contention.OTHER] >= MIN_FOREIGN_SHARE * use.cores and stretch.of_all(view, lost)
    own = use.own
    if not foreign and not (sum(own.values()) >= MIN_OWN_SHARE * use.cores and _fills_the_slots(view)):
        return
    who = use.heaviest if foreign else max(own, key=lambda each: own[each])
    evidence = [
        Evidence("cpu_busy_ratio", use.busy, "ratio", f"< {MIN_BUSY_SHARE:g}", use.at),
        Evidence("cores_of_the_heaviest", use.cores_by[who], "cores", f"< {MIN_FOREIGN_SHARE * use.cores:g}", use.at),
        Evidence("slowdown_at_equal_rows", lost.factor, "ratio", f"< {MIN_SLOWDOWN:g}", view.last.ended),
        Evidence("planning_slowdown", stretched, "ratio", f"< {stretch.MIN_STRETCH_RATIO:g}", view.last.ended),
    ]
    yield Finding(
        f"{use.busy:.0%} of {counted(use.cores, 'core is', 'cores are')} busy ({use.cores_by[who]:.1f} used by {who}); "
        f"a batch takes {lost.seconds:.1f} s instead of the usual {lost.usual_seconds:.1f} s",
        Component("host", "the driver's machine", who),
        tuple(evidence),
        (REMEDIES[who],),
        confidence=min(
            0.95, 0.5 + 0.15 * (use.busy >= 0.97) + 0.15 * (stretched >= stretch.MIN_STRETCH_RATIO) + 0.15 * foreign
        ),
        began=view.baseline.recent[0].started,
        share=max(0.0, 1 - 1 / lost.factor),
    )


def _not_sampled(view: QueryView, lost: Slowdown) -> Iterator[Finding]:
    """An event log has no figures of the machine: there, all of a batch takes longer, and its tasks wait for a core.

    Tasks that wait for a service have grown alone, and those that have more to do compute.
    """
    now, before = stretch.work(view, batch_time.pairs(view)), stretch.work(view, batch_time.usual_pairs(view))
    if (
        now is None
        or before is None
        or view.last is None
        or lost.factor < MIN_SLOWDOWN
        or not stretch.of_all(view, lost)
        or now.cpu_share > MAX_STARVED_CPU_SHARE
        or now.gc_share >= cpu_contention.MIN_GC_SHARE
        or now.cpu > MAX_MORE_CPU * before.cpu * max(1.0, lost.rows / max(1.0, lost.usual_rows))
        or cpu_contention.slots_taken(view)
        or cpu_contention.offender(view) is not None
    ):
        return
    at, stretched = view.last.ended, stretch.of_phase(view, "query_planning")
    yield Finding(
        f"all parts of a batch take longer: {lost.seconds:.1f} s instead of the usual {lost.usual_seconds:.1f} s, "
        f"planning {stretched:.1f} times as long; the tasks compute for {now.cpu_share:.0%} of their time, so they "
        "wait for a core",
        Component("host", "the driver's machine", "cores"),
        (
            Evidence("slowdown_at_equal_rows", lost.factor, "ratio", f"< {MIN_SLOWDOWN:g}", at),
            Evidence("planning_slowdown", stretched, "ratio", f"< {stretch.MIN_STRETCH_RATIO:g}", at),
            Evidence("task_cpu_share", now.cpu_share, "ratio", f"> {MAX_STARVED_CPU_SHARE:g}", at),
        ),
        (
            Remedy(
                "see what else runs on the machine, and whether a limit holds the driver's CPU back",
                "the machine was not sampled; only what the batches lost is known",
                command="top -o %CPU",
            ),
        ),
        confidence=0.6,
        began=view.baseline.recent[0].started,
        share=max(0.0, 1 - 1 / lost.factor),
    )


def _from_birth(view: QueryView, use: cpu_contention.CpuUse) -> Iterator[Finding]:
    """Without a past nothing says how long a batch takes on a free machine, but others have most of this one."""
    began = view.batches[0].started if view.batches else view.now
    if not _mostly_foreign(use) or view.last is None:
        return
    long, pressed = max(view.run.unfinished_seconds or 0.0, view.last.duration), _pressed(view)
    if long <= (view.trigger.interval or 0.0) or (pressed is None and view.now - began < MIN_RUN_SECONDS):
        return
    yield replace(
        _foreign(use, pressed, f"a batch takes {view.last.duration:.1f} s"),
        confidence=0.5 if pressed is None else 0.7,
        share=_stretch(view) if pressed is not None else 0.0,  # without it any cause that knows its saving comes first
    )


def _first_batch(view: QueryView, use: cpu_contention.CpuUse) -> Iterator[Finding]:
    """A first batch takes long in any case; how long it would take on a free machine is not known."""
    pressed, running = _pressed(view), view.run.unfinished_seconds or 0.0
    if pressed is not None and _mostly_foreign(use) and running > VERY_LONG_SECONDS:
        yield replace(_foreign(use, pressed, f"the first batch has run for {running:.0f} s"), harmless=True)


def _mostly_foreign(use: cpu_contention.CpuUse) -> bool:
    return use.busy >= MIN_BUSY_SHARE and use.cores_by[cpu_contention.OTHER] >= MIN_MOSTLY_FOREIGN_SHARE * use.cores


def _foreign(use: cpu_contention.CpuUse, pressed: Evidence | None, effect: str) -> Finding:
    """That other processes have had most of the cores since the query started."""
    taken = use.cores_by[cpu_contention.OTHER]
    evidence = [
        Evidence("cpu_busy_ratio", use.busy, "ratio", f"< {MIN_BUSY_SHARE:g}", use.at),
        Evidence("cores_of_the_heaviest", taken, "cores", f"< {MIN_MOSTLY_FOREIGN_SHARE * use.cores:g}", use.at),
    ]
    words = ""
    if pressed is not None:
        evidence.append(pressed)
        waits = pressed.unit == "ratio"
        words = f"; threads wait for a core {pressed.value:.0%} of the time" if waits else ""
        words = words or f"; {pressed.value:.0f} threads run or wait for a core"
    return Finding(
        f"{use.busy:.0%} of {counted(use.cores, 'core has', 'cores have')} been busy since the query started "
        f"({taken:.1f} used by {cpu_contention.OTHER}{words}); {effect}",
        Component("host", "the driver's machine", cpu_contention.OTHER),
        tuple(evidence),
        (REMEDIES[cpu_contention.OTHER],),
        confidence=0.7,
    )


def _pressed(view: QueryView) -> Evidence | None:
    """How far threads wait for a core, by the least of the newest samples; None where they do not, or nothing says."""
    samples = [sample for sample in view.hosts if sample.at <= view.now][-PRESSED_SAMPLES:]
    pressure = [sample.cpu_pressure_ratio for sample in samples if sample.cpu_pressure_ratio is not None]
    if len(pressure) == PRESSED_SAMPLES and min(pressure) >= MIN_PRESSURE_SHARE:
        return Evidence("cpu_pressure_ratio", min(pressure), "ratio", f"< {MIN_PRESSURE_SHARE:g}", samples[-1].at)
    queue = [
        float(sample.runnable_threads)
        for sample in samples
        if sample.runnable_threads is not None
        and sample.runnable_threads >= MIN_QUEUED_PER_CORE * (sample.cpu_count or 1)
    ]
    if not pressure and len(queue) == PRESSED_SAMPLES:
        return Evidence("runnable_threads", min(queue), "count", "about one for each core", samples[-1].at)
    return None


def _stretch(view: QueryView) -> float:
    """The share of a batch that the wait for cores takes, by the phases that do the same in every batch."""
    newest = view.baseline.settled[-RECENT_BATCHES:]
    if not newest:
        return 0.0
    seconds = median(sum(batch.phases.get(phase, 0.0) for phase in FIXED_PHASES) for batch in newest)
    return max(0.0, 1 - FIXED_SECONDS / seconds) if seconds > 0 else 0.0


def _fills_the_slots(view: QueryView) -> bool:
    """Whether the query's own tasks take all cores for most of a batch, and not for want of memory."""
    width, found = view.cluster.cores or 0, []
    for batch, tasks in batch_time.pairs(view):
        inside = batch_time.stage_time(tasks)
        ran = tasks.run_seconds
        if inside is None or not inside.seconds or not width or batch.duration <= 0:
            continue
        collected = tasks.gc_seconds
        computed = tasks.cpu_seconds + (tasks.python_seconds or 0.0)
        long = inside.seconds >= MIN_COMPUTING_SHARE * batch.duration
        filled = long and ran / (inside.seconds * width) >= MIN_FILLED_SHARE
        spills = any(stage.spill_bytes for stage in tasks.stages)  # which is packed and read again
        found.append(
            filled
            and computed >= MIN_COMPUTING_SHARE * ran
            and collected < cpu_contention.MIN_GC_SHARE * ran
            and not spills
        )
    return len(found) >= batch_time.MIN_PAIRS and sum(found) > len(found) / 2


def acquit(view: QueryView) -> str | None:
    use = cpu_contention.cpu_use(view)
    if use is None or use.busy >= MIN_BUSY_SHARE:
        return None
    return f"only {use.busy:.0%} of {counted(use.cores, 'core is', 'cores are')} busy"


RULE = Rule(
    "cpu-saturated",
    "warning",
    check,
    __doc__,
    (
        "falling-behind",
        "trigger-overrun",
        "freshness-breach",
        "checkpoint-slow",
        "state-commit-slow",
        "intermittent-sink",
    ),
    acquit,
)
