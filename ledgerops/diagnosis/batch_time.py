"""Where the time of a batch goes: what Spark's tasks explain, and what they do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import overload, strain
from ledgerops.diagnosis.cpu_contention import MIN_BUSY_SHARE, OTHER, OTHERS_SHARE, offender, slots_taken, taken, used
from ledgerops.diagnosis.criteria import VERY_LONG_SECONDS, WORTH_SHARE
from ledgerops.diagnosis.harm import harm
from ledgerops.model.history import History
from ledgerops.model.records import Progress, TaskSummary
from ledgerops.signals.baseline import RECENT_BATCHES, overran
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

MAX_PAIRS = 5  # newest batches whose tasks are known
LOOKBACK_BATCHES = (
    60  # settled batches among which those with tasks are looked for: a busy driver reads the tasks of few
)
MIN_PAIRS = 2  # of them, to say anything
MAX_WAITING_CPU_SHARE = 0.3  # tasks that compute less than this share of their time wait
MORE_THAN_USUAL = 2.0  # batch time against the query's own past, at equal rows
MIN_MAIN_SHARE = 0.5  # share of a batch from which one thing is what the batch does
MAX_READ_STAGES = 8  # stages of a batch: of more, only the newest were read, and the others' time is unknown
MIN_PART_SHARE = 0.25  # share of a batch that is worth naming beside another cause
MIN_GROWTH_SECONDS = 1.0  # seconds more than usual; a machine's hiccups stay below it in the median
MAX_OTHERS_RATIO = 1.7  # a machine that is too busy slows the other phases down as much
MIN_ALONE_RATIO = 1.5  # times all the rest of the batch; on a busy machine the rest grows with it
MIN_TOGETHER_SHARE = 0.6  # of a stage's wall time: so long its tasks are at work on average when all wait for the same
MIN_OTHERS_SECONDS = 0.1  # seconds of other phases below which their ratio says nothing
BUSY_SAMPLES = 3  # at one sample every 10 s


Pairs = Sequence[tuple[Progress, TaskSummary]]


@once
def needed(view: QueryView) -> int:
    """How many batches with tasks it takes to say anything: two, or one that is long or that shows growth.

    Such a batch speaks for itself, and a second one would end when everybody knows.
    """
    if _second(view):
        return 1
    ended = [batch for batch in view.batches if batch.rows > 0]
    if len(ended) >= MIN_PAIRS:
        return MIN_PAIRS
    long = bool(ended) and ended[0].duration > VERY_LONG_SECONDS
    return 1 if long or overload.growth(view) is not None else MIN_PAIRS


def _second(view: QueryView) -> Sequence[Progress]:
    """The second batch of a run of two, when it is very long: the first pays for warm-up, and it alone is typical."""
    settled = [batch for batch in view.baseline.settled if batch.rows > 0]
    alone = len(settled) == 1 and settled[0].duration > VERY_LONG_SECONDS
    return settled if alone and with_tasks(view, settled) else []


@once
def pairs(view: QueryView) -> Pairs:
    """The newest settled batches with their tasks, newest first; of those that outlast the interval in a row when the
    query is under strain and there are enough of them: the batches before them say how it was."""
    strained = strain.strained(view) and bool(view.trigger.interval)
    for newest in (view.baseline.settled[-2 * MAX_PAIRS :], view.baseline.settled[-LOOKBACK_BATCHES:]):
        if strained:
            long = takewhile(lambda batch: overran(batch, view.trigger.interval), reversed(newest))
            found = with_tasks(view, long)
            if len(found) >= MIN_PAIRS:
                return found
        found = with_tasks(view, reversed(newest))
        if len(found) >= MIN_PAIRS:
            return found
    known = _second(view) or [batch for batch in view.batches if batch.rows > 0]
    return with_tasks(view, reversed(known))


@once
def usual_pairs(view: QueryView) -> Pairs:
    """The same of the batches that serve as 'usual'; empty when there are too few to compare with."""
    found = with_tasks(view, reversed(view.baseline.usual[-8 * MAX_PAIRS :]))
    return found if len(found) >= MIN_PAIRS else []


def with_tasks(
    view: QueryView, batches: Iterable[Progress], most: int = MAX_PAIRS
) -> list[tuple[Progress, TaskSummary]]:
    """The first of these batches whose tasks are known, at most so many."""
    found = []
    for batch in batches:
        tasks = view.history.tasks_of(batch)
        if tasks is not None and tasks.stages and batch.duration > 0:
            found.append((batch, tasks))
        if len(found) == most:
            break
    return found


def slots(view: QueryView, tasks: int) -> int:
    """How many tasks of a stage can run at once: its tasks, or the cores if they are known to be fewer."""
    return max(1, min(tasks, view.cluster.cores or tasks))


def stage_seconds(tasks: TaskSummary) -> tuple[float, float] | None:
    """Wall time in which at least one stage was at work, and when the last ended; None when not all is known."""
    spans = [(stage.started, stage.ended) for stage in tasks.stages]
    if not spans or len(spans) >= MAX_READ_STAGES:
        return None
    total, until = 0.0, float("-inf")
    for started, ended in sorted((s, e) for s, e in spans if s is not None and e is not None):
        total += max(0.0, ended - max(started, until))
        until = max(until, ended)
    return (total, until) if all(s is not None and e is not None for s, e in spans) else None


class Outside(NamedTuple):
    """Medians over batches: seconds of `add_batch` in which no task ran, how many of them after the last task, and
    the batch duration."""

    seconds: float
    after: float
    duration: float
    batches: int

    @property
    def share(self) -> float:
        """That time as a share of the batch duration, 0 to 1."""
        return self.seconds / self.duration if self.duration > 0 else 0.0


@once
def outside_tasks(view: QueryView) -> Outside | None:
    """None when the tasks of too few batches are known."""
    return _outside(pairs(view), needed(view))


@once
def usually_outside(view: QueryView) -> Outside | None:
    """The same of the batches that serve as 'usual'."""
    return _outside(usual_pairs(view))


def _outside(known: Pairs, least: int = MIN_PAIRS) -> Outside | None:
    found = []
    for batch, tasks in known:
        inside = stage_seconds(tasks)
        if inside is None or "add_batch" not in batch.phases:
            continue
        seconds, last = inside
        outside = max(0.0, batch.phases["add_batch"] - seconds)
        after = batch.ended - batch.phases.get("commit_offsets", 0.0) - last
        found.append((outside, min(max(0.0, after), outside), batch.duration))
    if len(found) < least:
        return None
    seconds, after, duration = (median(each) for each in zip(*found, strict=True))
    return Outside(seconds, after, duration, len(found))


def machine_busy(view: QueryView) -> bool:
    """Whether there is hardly any CPU left for the query: stages then wait for cores, whatever the sink does.

    The machine's own figure does not tell it on a large host of which the driver may use only a part; then it shows
    in as many other queries as there are cores outlasting their interval, too.
    """
    samples = [host.cpu_busy_ratio for host in list(view.hosts)[-BUSY_SAMPLES:] if host.cpu_busy_ratio is not None]
    return (bool(samples) and median(samples) >= MIN_BUSY_SHARE) or _crowded(view)


def _crowded(view: QueryView) -> bool:
    fresh = view.now - WINDOW_SECONDS
    late = [
        other
        for other in view.others
        if (other.ended is None or other.ended.at >= fresh)
        and other.idle_since is None
        and other.last is not None
        and other.last.ended >= fresh
        and other.plan is not None
        and other.plan.trigger_interval
        and other.last.duration > other.plan.trigger_interval
        and _computes(other)
    ]
    return view.cluster.cores is not None and view.cluster.cores <= len(late)


def _computes(other: History) -> bool:
    """Whether the tasks of a query's newest batch with tasks used the cores; taken for granted where none is known.

    Queries that all wait for one slow database are late together and leave the cores free.
    """
    stages = other.tasks[-1].stages if other.tasks else ()
    ran = sum(stage.run_seconds for stage in stages)
    return ran <= 0 or sum(stage.cpu_seconds for stage in stages) >= MAX_WAITING_CPU_SHARE * ran


def sink_blocks(view: QueryView, outside: Outside) -> bool:
    """Whether that time is the sink's: most of the batch, or a good part of it that was not there before; and not the
    wait of stages for cores of a busy machine.

    What passes after the last task has ended is the sink's in any case.
    """
    if outside.after >= (MIN_MAIN_SHARE if harm(view) is None else WORTH_SHARE) * outside.duration:
        return True
    usual = usually_outside(view)
    more = outside.seconds - (usual.seconds if usual is not None else outside.seconds)
    if machine_busy(view) and not view.baseline.usual and not _keeps_itself_busy(view):
        typical = any(batch.rows > 0 for batch in view.baseline.settled)  # a first batch loads and compiles, slowly
        alone = typical and outside.seconds >= MIN_ALONE_RATIO * (outside.duration - outside.seconds)
        return alone and not slots_taken(view) and not _crowded(view)
    main = outside.share >= MIN_MAIN_SHARE
    grown = more >= max(MIN_GROWTH_SECONDS, MIN_PART_SHARE * outside.duration)
    return (main or grown) and not starved(view) and not slots_taken(view)


@once
def starved(view: QueryView) -> bool:
    """Whether the query waits for the cores of a busy machine: then all that it does takes longer, not one thing.

    Where other queries hold the slots, only tasks wait and the driver does not: nothing else shows it then.
    """
    if offender(view) is not None:
        return True
    if not machine_busy(view) or _keeps_itself_busy(view):
        return False
    if _crowded(view):
        return True
    if not view.baseline.usual:
        return False  # a busy machine slows all parts of a batch alike: which of them is largest still tells the cause
    if slots_taken(view):
        return True
    usual, latest = view.baseline.usual, [batch for batch, _ in pairs(view)] or view.baseline.steady[-RECENT_BATCHES:]
    if not usual or not latest:
        outside = outside_tasks(view)
        return outside is None or outside.seconds < MIN_ALONE_RATIO * (outside.duration - outside.seconds)
    before, now = (
        median(each.duration - each.phases.get("add_batch", 0.0) for each in some) for some in (usual, latest)
    )
    return now >= MAX_OTHERS_RATIO * max(before, MIN_OTHERS_SECONDS)


def _keeps_itself_busy(view: QueryView) -> bool:
    """Whether the application's own processes use the machine, and no other query: then nobody holds it up."""
    use = used(view)
    if use is None or _crowded(view):
        return False
    since = view.baseline.steady[-RECENT_BATCHES].started if len(view.baseline.steady) >= RECENT_BATCHES else use.at
    rest = sum(taken(other, since, view.now) or 0.0 for other in view.others if other.ended is None)
    return use.by[OTHER] + rest < OTHERS_SHARE * use.cores


class Waiting(NamedTuple):
    """The stage that writes, when its tasks mostly wait: neither CPU, nor garbage collection, nor Python."""

    stage: str
    seconds: float  # wall time of the stage
    cpu_share: float
    duration: float


def waiting_sink_stage(view: QueryView) -> Waiting | None:
    """The last stage of a batch is the one that writes."""
    return _waiting(view, pairs(view))


def _waiting(view: QueryView, known: Pairs) -> Waiting | None:
    found = []
    for batch, tasks in known:
        stage = tasks.stages[-1]
        busy = stage.cpu_seconds + stage.gc_seconds + (tasks.python_seconds or 0.0)
        wall = stage.wall_seconds
        if wall is None or stage.run_seconds <= 0:
            continue
        if stage.run_seconds / slots(view, stage.tasks) < MIN_TOGETHER_SHARE * wall:
            continue  # one task is what the others wait for
        found.append(Waiting(f"stage {stage.stage_id}", wall, min(1.0, busy / stage.run_seconds), batch.duration))
    if len(found) < needed(view):
        return None
    return sorted(found, key=lambda each: each.cpu_share)[len(found) // 2]


def sink_waits(view: QueryView, waiting: Waiting) -> bool:
    """Whether the writing tasks wait for the sink: most of the batch, more than they used to, on a machine with CPU.

    Tasks that read a Python source or run Python wait for their worker in just the same way; so the past decides.
    """
    if machine_busy(view):
        return False
    lost = view.baseline.slowdown
    if lost is None:
        return _waits_from_birth(view, waiting)
    if lost.factor < MORE_THAN_USUAL:
        return False
    usual = _waiting(view, usual_pairs(view))
    if usual is not None and usual.cpu_share < MAX_WAITING_CPU_SHARE:
        return False  # they always wait, and nothing says for what
    return waiting.cpu_share < MAX_WAITING_CPU_SHARE and waiting.seconds >= MIN_MAIN_SHARE * waiting.duration


def _waits_from_birth(view: QueryView, waiting: Waiting) -> bool:
    """Without a past the stage must do nothing but write: it reads a shuffle and not the source, and neither state nor
    shuffle explains its waiting."""
    known = pairs(view)
    if waiting.cpu_share >= MAX_WAITING_CPU_SHARE or waiting.seconds < MIN_MAIN_SHARE * waiting.duration:
        return False
    if not all(tasks.stages[-1].reads_shuffle for _, tasks in known):
        return False
    state = median(
        batch.state_seconds + sum(stage.shuffle_seconds or 0.0 for stage in tasks.stages) for batch, tasks in known
    )
    return state < MAX_WAITING_CPU_SHARE * median(tasks.stages[-1].run_seconds for _, tasks in known)
