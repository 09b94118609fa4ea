"""Query stuck: a batch has run, or the query has reported nothing, for far longer than usual.

Meaning: Spark reports a batch only when it has ended. A batch that hangs reports nothing, and every gauge keeps its
    last, healthy value. The watchdog polls the query itself and found that one trigger has run for far too long. At
    first that is a warning, and as long as tasks end, jobs begin or all tasks compute it stays one: the batch has more
    to do than usual. (Where it takes half a minute from the end of a task to the next, that is allowed twice.)
    One earlier batch that hung does not count as usual. What its tasks wait for is said where two looks show it.
    Time in which the whole driver stood still (a suspended machine or container) does not count.
    The first batch of a run may take long. It counts as stuck after five minutes in which no task ended and no job
    began, or after one minute in which no job runs and the driver uses hardly any CPU. That its tasks wait and the
    application has no executor is said after a minute, as info: a cluster may have to bring up machines first.
Impact: the query writes no results. The backlog grows without being reported; watermark and state do not change.
Diagnosis: 1. `ledgerops_batch_running_seconds{app="APP",query="QUERY"}` is how long the batch has run,
    `time() - ledgerops_last_seen_timestamp_seconds{app="APP",query="QUERY"}` how long nothing was reported. If only the
    second one grows, no batch runs at all: the driver hangs.
    2. Open the Spark UI, page "Stages". If a stage has running tasks, they hang: take a thread dump of the executor
    on the page "Executors".
    3. If no stage runs, the driver or the sink hangs: take a thread dump of the driver on that page, or by `jstack PID`
    on its machine. A network call at the top of a thread names what it waits for.
Mitigation: save the thread dump first, because a restart destroys the evidence. Repair what the batch waits for (sink,
    broker, external service). If the batch does not continue, stop the query and start it again from its checkpoint:
    the batch is repeated: nothing is lost, and a sink that appends may get its rows twice.
Evidence:
    ledgerops_batch_running_seconds: now - `since` of the newest batch_running record of the run
    seconds_since_last_seen: now - the newest of: start, end of the newest batch, idle event, and when the newest event
        came, which a slow listener of the application delays
    batch_seconds_median: median of durationMs.triggerExecution / 1000 over the batches of the run without its first
"""

from collections.abc import Iterator

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.hang import MIN_WAITING_SECONDS, first_batch_moves, limits, longest_silence, moves
from ledgerops.diagnosis.facts.unwatched import MIN_UNWATCHED_SECONDS, stood_still, unseen
from ledgerops.diagnosis.facts.waiting import seen_doing, steps, unanswered, waiting
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.latency import RUNNING
from ledgerops.model.finding import Component, Evidence, Finding, Severity
from ledgerops.model.records import CONTINUOUS, Running
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    history = view.history
    batch, ended = view.run.unfinished, history.ended
    if history.last_seen is None or (ended is not None and (batch is None or ended.exception is not None)):
        return  # what a batch failed with says more
    if view.plan.trigger == CONTINUOUS:
        return  # Spark tells nothing of such a query, neither that a batch runs nor that one ended
    if unseen(view) >= MIN_UNWATCHED_SECONDS:
        return  # no samples: whether the query is stuck is not known, and observer-degraded reports that
    if batch is not None:
        yield from _hanging(view, batch)
    elif history.idle_since is None:
        yield from _silent(view, max(history.last_seen, history.told_at or 0.0))


def _hanging(view: QueryView, running: Running) -> Iterator[Finding]:
    seconds, limit = view.run.unfinished_seconds or 0.0, limits(view)
    ran = seconds - stood_still(view, running.since, running.since + seconds)
    going_on, found = moves(view), waiting(view)
    alone = found is not None and found.whom == "executor" and ran > MIN_WAITING_SECONDS
    early = ran <= limit.warning or first_batch_moves(view)
    if early and not alone:
        return
    stuck = ran > limit.stuck and not going_on and not (found and found.whom == "nobody")
    phase = running.message.strip()  # an event log has none
    reports = f"; Spark reports: {phase}" if phase else ""
    yield _finding(
        view,
        f"a batch has run for {duration(seconds)}{_usual(view)}{reports}"
        f"{'; its tasks still end' if going_on else ''}{seen_doing(view)}",
        Evidence(RUNNING.name, seconds, "seconds", f"<= {limit.stuck if stuck else limit.warning:.0f}", view.now),
        phase or None,
        running.since,
        at_most="info" if early else "critical" if stuck else "warning",
    )


def _silent(view: QueryView, since: float) -> Iterator[Finding]:
    silent = view.now - since
    limit = longest_silence(view) if silent > MIN_WAITING_SECONDS else None  # it is never less
    if limit is not None and silent - stood_still(view, since, view.now) > limit:
        yield _finding(
            view,
            f"no batch and no idle event for {duration(silent)}{_usual(view)}{unanswered(view)}",
            Evidence("seconds_since_last_seen", silent, "seconds", f"<= {limit:.0f}", view.now),
            None,
            since,
        )


def _usual(view: QueryView) -> str:
    usual = view.baseline.usual_duration
    return f"; the usual is {duration(usual)}" if usual is not None else ""


def _finding(
    view: QueryView, summary: str, evidence: Evidence, phase: str | None, since: float, at_most: Severity = "critical"
) -> Finding:
    quoted = [evidence]
    if view.baseline.usual_duration is not None:
        quoted.append(Evidence("batch_seconds_median", view.baseline.usual_duration, "seconds", "the usual", view.now))
    return Finding(
        summary,
        Component("query", view.query, phase),
        tuple(quoted),
        steps(view),
        confidence=0.9 if view.baseline.usual_duration is not None else 0.7,
        began=since,
        at_most=at_most,
    )


RULE = Rule(
    "query-stuck", "critical", check, __doc__, ("freshness-breach", "trigger-overrun"), linger=0.0, at_rest=True
)
