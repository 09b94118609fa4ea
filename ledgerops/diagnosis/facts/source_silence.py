"""What tells that the broker of a query does not answer: our own requests, the query's wait, and its exception."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.arrivals import heard_at
from ledgerops.diagnosis.facts.context import sink_kind, source_kind
from ledgerops.diagnosis.facts.deleted_offsets import MAX_ANSWER_SECONDS
from ledgerops.diagnosis.facts.exception_text import first_line
from ledgerops.diagnosis.facts.failures import failures
from ledgerops.diagnosis.facts.hang import MIN_TIMES_LASTING, times_usual_rows
from ledgerops.diagnosis.facts.waiting import waiting
from ledgerops.metrics.latency import RUNNING
from ledgerops.metrics.pressure import REACHABLE
from ledgerops.model.finding import Evidence
from ledgerops.model.records import LONG_RUNNING
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

MIN_UNANSWERED_SECONDS = 10.0  # while a broker restarts, others take over its partitions in less
WAITING = re.compile(r"getting offsets from kafka", re.IGNORECASE)  # Spark's status message
TIMED_OUT = re.compile(  # but not what a producer says: that is of a sink
    r"kafka\.common\.errors\.(Timeout|Disconnect|BrokerNotAvailable)Exception"
    r"(?!: (Topic \S+ not present in metadata|Expiring \S+ record|Failed to allocate memory))"
    r"|Timed out waiting for a node assignment|Timeout .*topic metadata|No resolvable bootstrap urls"
)


class Silence(NamedTuple):
    """What tells that the broker does not answer, since when, and how sure that is."""

    what: str
    since: float
    evidence: tuple[Evidence, ...]
    confidence: float


def silences(view: QueryView) -> Sequence[Silence]:
    """All signs that there are; none while the broker answers."""
    found = (_unanswered(view), _waits(view), _tasks_wait(view), _gave_up(view))
    return [silence for silence in found if silence is not None]


def _unanswered(view: QueryView) -> Silence | None:
    asked = view.lag.asked
    if asked is None or asked.error is None or asked.unreachable_since is None or view.now - asked.at > WINDOW_SECONDS:
        return None
    seconds = view.now - asked.unreachable_since
    answered_before = bool(view.history.earliest_times)  # else it is ledgerops that was given a wrong address
    ours_alone = heard_at(view.history) > asked.unreachable_since + MAX_ANSWER_SECONDS  # the query reaches it
    if seconds < MIN_UNANSWERED_SECONDS or not answered_before or ours_alone:
        return None
    evidence = (
        Evidence(REACHABLE.name, 0.0, "count", "1", asked.at),
        Evidence("seconds_without_answer", seconds, "seconds", f"< {MIN_UNANSWERED_SECONDS:g}", view.now),
    )
    words = f"the broker has not answered for {duration(seconds)} ({asked.error})"
    return Silence(words, asked.unreachable_since, evidence, 0.9)


def _waits(view: QueryView) -> Silence | None:
    running, seconds = view.history.running, view.run.running_seconds
    if running is None or seconds is None or not WAITING.search(running.message):
        return None
    longest = max((batch.phases.get("latest_offset", 0.0) for batch in view.batches), default=0.0)
    limit = max(MIN_UNANSWERED_SECONDS, MIN_TIMES_LASTING * longest)
    if seconds < limit:
        return None
    evidence, asked = (Evidence(RUNNING.name, seconds, "seconds", f"< {limit:.0f}", view.now),), view.lag.asked
    answers = asked is not None and asked.error is None and asked.at >= running.since + MIN_UNANSWERED_SECONDS
    tail = ", although the broker answers ledgerops" if answers else ""
    words = f"the query has waited {duration(seconds)} for offsets{tail}"
    return Silence(words, running.since, evidence, 0.6 if answers else 0.8)


def _tasks_wait(view: QueryView) -> Silence | None:
    """Nothing but the stacks tells it where the broker goes away while a batch reads."""
    running, seconds, found = view.history.running, view.run.running_seconds, waiting(view)
    reads = source_kind(view) == "kafka" and sink_kind(view) != "kafka"
    if running is None or seconds is None or found is None or found.whom != "broker" or not reads:
        return None
    usual = view.baseline.usual_duration
    if usual is None or not found.still or found.sends or view.plan.ends_itself or view.plan.trigger in LONG_RUNNING:
        return None
    limit = max(MIN_UNANSWERED_SECONDS, MIN_TIMES_LASTING * usual * max(1.0, times_usual_rows(view)))
    asked = view.lag.asked
    if seconds < limit or (asked is not None and asked.error is None and asked.at >= running.since):
        return None  # the broker answers
    evidence = (Evidence(RUNNING.name, seconds, "seconds", f"< {limit:.0f}", view.now),)
    return Silence(f"a batch has run for {duration(seconds)}: {found.words}", running.since, evidence, 0.8)


def _gave_up(view: QueryView) -> Silence | None:
    ended = view.history.ended
    if ended is None or ended.exception is None or not TIMED_OUT.search(ended.exception):
        return None
    last = view.history.last
    if last is not None and not any(source.kind == "kafka" for source in last.sources):
        return None  # so it is no broker of a source
    words = f"the query gave up waiting for the broker: {first_line(ended.exception)}"
    return Silence(words, ended.at, (failures(view, ended.at),), 0.8)
