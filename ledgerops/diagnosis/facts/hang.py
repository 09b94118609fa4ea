"""How long a batch may run before it counts as hanging, by what is usual for the query."""

from itertools import pairwise
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis.facts import growth
from ledgerops.diagnosis.facts.contention import cpu_use
from ledgerops.diagnosis.facts.deleted_offsets import MAX_ANSWER_SECONDS
from ledgerops.diagnosis.facts.former_runs import former_runs, usual_run
from ledgerops.diagnosis.limits import CLEAR_TIMES, FAR_TIMES, SHOWN_BATCHES, VERY_FAR_TIMES, VERY_LONG_SECONDS
from ledgerops.model.records import LONG_RUNNING
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rates import rows_of

# anything may pause for that long: a full garbage collection, a broker that elects a leader
MIN_STUCK_SECONDS = 30.0
MOVING_SECONDS = 10.0  # in which a task ended or a job began: two looks of the watchdog at a busy driver
# over what was seen lately, or its rows explain; under overload a batch may take twice the one before
MIN_TIMES_LASTING = 4.0
MIN_TIMES_REPEATED = 1.5  # over the second longest batch of all that are remembered: some batches are long in turns
# the first batch of a run may read a long backlog, restore state and start executors
MAX_FIRST_BATCH_SECONDS = 300.0
MIN_WAITING_SECONDS = 60.0  # without a running job, where planning would take CPU, or without any event
MAX_STILL_CORES = 0.1  # used by the driver's processes while they wait; Spark's own threads use a tenth of it
# a trigger that reads all available rows in one run may run for that long, or four times as long as ever before
MAX_ONE_BATCH_SECONDS = 3600.0


class Limits(NamedTuple):
    """Seconds from which a running batch is worth a warning, and from which it is stuck."""

    warning: float
    stuck: float


@once
def limits(view: QueryView) -> Limits:
    """By the trigger, the usual batches and the rows that wait; one long batch is not the usual."""
    if view.plan.trigger in LONG_RUNNING:
        most = max(2 * MAX_FIRST_BATCH_SECONDS, 3 * view.interval)
        return Limits(most, most)
    if view.plan.ends_itself:
        running, longest = view.run.unfinished, max((former.seconds for former in former_runs(view)), default=0.0)
        most = max(MAX_ONE_BATCH_SECONDS, MIN_TIMES_LASTING * longest)
        computes = running is not None and running.tasks_running  # each task of a backfill may take long
        if not computes and (run := usual_run(view)) is not None:
            most = min(max(MAX_FIRST_BATCH_SECONDS, VERY_FAR_TIMES * run), most)
        return Limits(most, most)
    interval, usual = view.interval, view.baseline.usual_duration
    if usual is None:  # of the first batches of a run
        longest = max((batch.duration for batch in view.baseline.settled or view.batches), default=0.0)
        most = max(MAX_FIRST_BATCH_SECONDS, VERY_FAR_TIMES * interval)
        if nothing_moves(view):
            most = max(MIN_WAITING_SECONDS, 2 * interval)
        most = max(most, MIN_TIMES_LASTING * longest)
        return Limits(most, most)
    # the most seconds that each of two latest batches in a row took: one that hung is followed by a quick one
    latest = [batch.duration for batch in view.batches[-2 * SHOWN_BATCHES :]]
    lasting = max((min(pair) for pair in pairwise(latest)), default=0.0)
    expected = max(
        VERY_FAR_TIMES * usual,
        MIN_TIMES_LASTING * lasting,
        MIN_TIMES_REPEATED * view.baseline.durations[-2],
        2 * interval,
        MIN_TIMES_LASTING * usual * times_usual_rows(view),
    )
    stuck = max(MIN_STUCK_SECONDS, expected)
    return Limits(stuck if moves(view) else max(VERY_LONG_SECONDS, expected), stuck)


def longest_silence(view: QueryView) -> float | None:
    """Seconds without a batch and an idle event, beyond which the query is stuck; None while the trigger is not known.

    An event log and Spark Connect report no trigger: a query that has paused for an hour may pause for three.
    """
    if not view.trigger.known and view.trigger.longest_pause is None:
        return None
    rhythm = 0.0 if view.trigger.known else FAR_TIMES * (view.trigger.longest_pause or 0.0)
    return max(limits(view).stuck, MIN_WAITING_SECONDS, rhythm)


def first_batch_moves(view: QueryView) -> bool:
    """Whether a first batch, however long, has finished a task or begun a job lately."""
    return not view.batches and not nothing_moves(view) and moves(view, MAX_FIRST_BATCH_SECONDS)


def moves(view: QueryView, seconds: float = MOVING_SECONDS) -> bool:
    """Whether the running batch has finished a task or begun a job a moment ago, or not much longer ago than it takes
    between two: it has more to do, and goes on."""
    running = view.run.unfinished
    if running is None or running.moved is None:
        return False
    return view.now - running.moved <= max(seconds, min(CLEAR_TIMES * running.pace, MAX_FIRST_BATCH_SECONDS))


def nothing_moves(view: QueryView) -> bool:
    """Whether no job is at work or was begun for a minute, and the driver computes nothing either: it waits."""
    running, use = view.run.unfinished, cpu_use(view)
    if running is None or running.tasks != 0 or running.moved is None or use is None:
        return False
    return view.now - running.moved >= MIN_WAITING_SECONDS and use.used <= MAX_STILL_CORES


def times_usual_rows(view: QueryView) -> float:
    """How many times the usual rows the running batch reads: what its source had left when it began, where that was
    sampled; else what comes while a batch as long as the one before it runs. 0 where neither is known.

    A producer that was delayed may send the rows of several minutes at once, which then take long to process, and a
    query that falls behind has more of them in each batch.
    """
    running = view.run.unfinished
    if running is None or view.plan.rate_limits:
        return 0.0
    near = [each for each in view.history.heads if abs(each.at - running.since) <= MAX_ANSWER_SECONDS]
    samples = [each for each in near if each.error is None]
    load, worked = growth.load(view), [batch for batch in view.baseline.settled if batch.rows > 0]
    if not worked:
        return 0.0
    if samples:
        newest, of = samples[-1].latest, {source.name for source in view.sources if source.latest}
        offsets = sum(max(0, newest.get(partition, end) - end) for partition, end in view.lag.consumed.items())
        left = offsets * view.capacity.rows_per_offset
    elif load is not None:
        of = set(load.told) or {source.name for source in view.sources}
        left = (sum(load.told.values()) or load.arrival) * view.batches[-1].duration
    else:
        return 0.0
    left += median(batch.rows - rows_of(batch, of) for batch in worked)  # of sources that do not say what comes
    return left / median(batch.rows for batch in worked)
