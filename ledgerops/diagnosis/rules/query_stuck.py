"""Query stuck: a batch has run, or the query has reported nothing, for far longer than usual.

Meaning: Spark reports a batch only when it has ended. A batch that hangs reports nothing, and every gauge keeps its
    last, healthy value. The watchdog polls the query itself and found that one trigger has run for far too long.
    The first batch of a run may take long. It counts as stuck after five minutes in which no task ended and no job
    began, or after one minute in which no job runs and the driver uses hardly any CPU.
Impact: the query writes no results. The backlog grows without being reported; watermark and state do not change.
Diagnosis: 1. `ledgerops_batch_running_seconds{query="QUERY"}` is how long the batch has run,
    `time() - ledgerops_last_seen_timestamp_seconds{query="QUERY"}` how long nothing was reported. If only the second
    one grows, no batch runs at all: the driver hangs.
    2. Open the Spark UI, page "Stages". If a stage has running tasks, they hang: take a thread dump of the executor
    there.
    3. If no stage runs, the driver or the sink hangs: take a thread dump of the driver (`jstack PID`). A network call
    at the top of a thread names what it waits for.
Mitigation: save the thread dump first, because a restart destroys the evidence. Repair what the batch waits for (sink,
    broker, external service). If the batch does not continue, stop the query and start it again from its checkpoint:
    the batch is repeated and nothing is lost.
Evidence:
    ledgerops_batch_running_seconds: now minus `since` of the newest batch_running record of the run, as long as no
        newer event exists
    seconds_since_last_seen: now minus the newest of: start, end of the newest batch, idle event, terminated event
    batch_seconds_median: median of durationMs.triggerExecution / 1000 over the batches of the run without its first, if
        there are at least 3
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.diagnosis.cpu_contention import cpu_use
from ledgerops.diagnosis.rule import Rule
from ledgerops.diagnosis.rules.observer_degraded import MIN_SILENCE_SECONDS, unseen
from ledgerops.metrics.latency import RUNNING
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import LONG_RUNNING
from ledgerops.signals.query_view import QueryView

# anything may pause for that long: a full garbage collection, a broker that elects a leader
MIN_STUCK_SECONDS = 30.0
MIN_TIMES_USUAL = 10.0  # over the median batch
MIN_TIMES_LONGEST = 4.0  # over the longest of the latest batches; under overload each may be twice the one before
# the first batch of a run may read a long backlog, restore state and start executors
MAX_FIRST_BATCH_SECONDS = 300.0
MIN_STILL_SECONDS = 60.0  # of a batch without a past and without a running job: planning it would take the driver's CPU
MAX_STILL_CORES = 0.1  # used by the driver's processes while they wait; Spark's own threads use a tenth of it
MIN_TIMES_EXPECTED = 3.0  # over the time that so many rows usually take
# between the start of a batch and a sample of its source that shows what it reads
MAX_SAMPLE_DISTANCE_SECONDS = 5.0
MIN_TIMES_PAUSE = 3.0  # over the longest pause seen, where the trigger is not known
MAX_ONE_BATCH_SECONDS = 3600.0  # a trigger that reads all available rows in one run may run for that long
LATEST_BATCHES = 10
MIN_QUIET_SECONDS = 60.0  # without progress and without an idle event, which Spark sends every 10 s


def check(view: QueryView) -> Iterator[Finding]:
    history = view.history
    if history.ended is not None or history.last_seen is None:
        return
    if unseen(view) >= MIN_SILENCE_SECONDS:
        return  # no samples: whether the query is stuck is not known, and observer-degraded reports that
    running, limit = view.run.running_seconds, _limit(view)
    if history.running is not None and running is not None:
        if running > limit and not _first_batch_moves(view):
            usual = _usual(view)
            phase = history.running.message.strip() or "no message"
            yield _finding(
                view,
                f"a batch has run for {running:.0f} s{usual}; Spark reports: {phase}",
                Evidence(RUNNING.name, running, "seconds", f"<= {limit:.0f}", view.now),
                phase,
                history.running.since,
            )
        return
    if history.idle_since is not None:
        return
    silent, rhythm = view.now - history.last_seen, _rhythm(view)
    if rhythm is None:
        return
    limit = max(limit, MIN_QUIET_SECONDS, rhythm)
    if silent > limit:
        yield _finding(
            view,
            f"no batch and no idle event for {silent:.0f} s{_usual(view)}",
            Evidence("seconds_since_last_seen", silent, "seconds", f"<= {limit:.0f}", view.now),
            None,
            history.last_seen,
        )


def _first_batch_moves(view: QueryView) -> bool:
    """Whether a first batch, however long, has finished a task or begun a job lately."""
    running = view.history.running
    if view.batches or running is None or running.moved is None or _nothing_moves(view):
        return False
    return view.now - running.moved <= MAX_FIRST_BATCH_SECONDS


def _nothing_moves(view: QueryView) -> bool:
    """Whether no job is at work or was begun for a minute, and the driver computes nothing either: it waits."""
    running, use = view.history.running, cpu_use(view)
    if running is None or running.tasks != 0 or running.moved is None or use is None:
        return False
    return view.now - running.moved >= MIN_STILL_SECONDS and sum(use.own.values()) <= MAX_STILL_CORES


def _limit(view: QueryView) -> float:
    """Seconds from which a trigger counts as stuck."""
    if view.plan.trigger in LONG_RUNNING:
        return max(2 * MAX_FIRST_BATCH_SECONDS, 3 * (view.trigger.interval or 0.0))
    if view.plan.trigger in ("available_now", "once"):
        return MAX_ONE_BATCH_SECONDS
    latest = [batch.duration for batch in view.batches[-LATEST_BATCHES:]]
    interval = view.trigger.interval or 0.0
    if view.baseline.usual_duration is None:
        longest = MIN_TIMES_LONGEST * max(latest, default=0.0)
        if _nothing_moves(view):
            return max(MIN_STILL_SECONDS, 2 * interval, longest)
        return max(MAX_FIRST_BATCH_SECONDS, MIN_TIMES_USUAL * interval, longest)
    much = MIN_TIMES_EXPECTED * view.baseline.usual_duration * _times_usual_rows(view)
    return max(
        MIN_STUCK_SECONDS,
        MIN_TIMES_USUAL * view.baseline.usual_duration,
        MIN_TIMES_LONGEST * max(latest),
        2 * interval,
        much,
    )


def _rhythm(view: QueryView) -> float | None:
    """Seconds of silence that the query's trigger alone explains; None while the trigger is not known.

    An event log and Spark Connect report no trigger: a query that has paused for an hour may pause for three.
    """
    if view.trigger.known:
        return 0.0
    return None if view.trigger.longest_pause is None else MIN_TIMES_PAUSE * view.trigger.longest_pause


def _times_usual_rows(view: QueryView) -> float:
    """How many times the usual rows the running batch reads, if its source was sampled when it began; else 0.

    A producer that was delayed may send the rows of several minutes at once, which then take long to process.
    """
    running, rows = view.history.running, [batch.rows for batch in view.baseline.settled if batch.rows > 0]
    if running is None or not rows or view.plan.rate_limits:
        return 0.0
    samples = [
        heads
        for heads in view.history.heads
        if heads.error is None and abs(heads.at - running.since) <= MAX_SAMPLE_DISTANCE_SECONDS
    ]
    if not samples:
        return 0.0
    left = sum(max(0, samples[-1].latest.get(partition, end) - end) for partition, end in view.lag.consumed.items())
    return left / median(rows)


def _usual(view: QueryView) -> str:
    return f"; the usual is {view.baseline.usual_duration:.1f} s" if view.baseline.usual_duration is not None else ""


def _finding(view: QueryView, summary: str, evidence: Evidence, phase: str | None, since: float) -> Finding:
    quoted = [evidence]
    if view.baseline.usual_duration is not None:
        quoted.append(Evidence("batch_seconds_median", view.baseline.usual_duration, "seconds", "the usual", view.now))
    return Finding(
        summary,
        Component("query", view.query, phase),
        tuple(quoted),
        (
            Remedy(
                "take a thread dump of the driver, then stop the query and start it from its checkpoint",
                "the dump shows what the batch waits for; a restart repeats the batch and loses nothing",
                command="jstack $(jps -l | awk '/SparkSubmit/ {print $1}')",
                safe=False,
            ),
        ),
        confidence=0.9 if view.baseline.usual_duration is not None else 0.7,
        began=since,
    )


RULE = Rule("query-stuck", "critical", check, __doc__, ("freshness-breach",), linger=0.0, at_rest=True)
