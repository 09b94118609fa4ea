"""Source unreachable: the broker does not answer.

Meaning: ledgerops asks the broker for its offsets and gets no answer, or the query waits for offsets without an answer,
    or it has just failed because of that.
Impact: nothing is read, and the number of new rows is unknown. Spark's Kafka source gives up after about a minute
    unless its options allow more, and the query fails.
Diagnosis: 1. `ledgerops_source_reachable{query="QUERY"}` is 0 while the broker does not answer ledgerops. If it is 1
    and only `ledgerops_batch_running_seconds{query="QUERY"}` grows, the broker answers ledgerops but not the query:
    check the credentials and addresses of the query.
    2. On the machine of the driver run `kafka-broker-api-versions.sh --bootstrap-server SERVERS`. Without an answer,
    check the broker and the network.
    3. If it answers there, check name resolution and the firewall between the executors and every broker of the
    cluster.
Mitigation: bring the broker back; the query continues by itself if it has not failed yet. If it has, start it with the
    same checkpoint: nothing is lost as long as the topic keeps the records.
Evidence:
    ledgerops_source_reachable: 0, because the newest `offsets` record has an `error`
    seconds_without_answer: now minus unreachable_since of the newest `offsets` record
    ledgerops_batch_running_seconds: now minus `since` of the newest `batch_running` record whose message says that the
        query waits for offsets
    ledgerops_query_failures_total: number of `terminated` records of the query with an exception so far
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ledgerops.diagnosis.rule import Rule
from ledgerops.diagnosis.rules.query_failed import first_line
from ledgerops.metrics.latency import RUNNING
from ledgerops.metrics.pressure import REACHABLE
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView

MIN_SILENCE_SECONDS = 10.0  # while a broker restarts, others take over its partitions in less
GRACE_SECONDS = 5.0  # the broker may have answered the query while the first failed request was in progress
STALE_SECONDS = 60.0  # an older failed request does not describe the present: the process that asks has ended
MIN_TIMES_LONGEST = 4.0  # over the longest wait of the query for offsets so far
WAITING = re.compile(r"getting offsets from kafka", re.IGNORECASE)  # Spark's status message
TIMED_OUT = re.compile(
    r"kafka\.common\.errors\.(Timeout|Disconnect|BrokerNotAvailable)Exception"
    r"|Timed out waiting for a node assignment|Timeout .*topic metadata|No resolvable bootstrap urls"
)


class Silence(NamedTuple):
    """What tells that the broker does not answer, since when, and how sure that is."""

    what: str
    since: float
    evidence: tuple[Evidence, ...]
    confidence: float


def check(view: QueryView) -> Iterator[Finding]:
    if view.history.ended is not None and view.history.ended.exception is None:
        return
    found = [silence for silence in (_unanswered(view), _waits(view), _gave_up(view)) if silence is not None]
    if not found:
        return
    asked = view.lag.asked
    names = [source.name for source in view.history.last.sources] if view.history.last is not None else []
    yield Finding(
        "; ".join(silence.what for silence in found),
        Component("source", ",".join(names) or view.query, asked.error if asked is not None else None),
        tuple(each for silence in found for each in silence.evidence),
        (
            Remedy(
                "bring back the broker, or the network to it",
                "the query continues by itself unless it has failed already",
            ),
            Remedy(
                "let the source wait longer: raise kafka.default.api.timeout.ms and kafka.request.timeout.ms",
                "without it Spark's Kafka source fails the query after a minute without a broker",
                safe=False,
            ),
        ),
        confidence=min(0.98, max(silence.confidence for silence in found) + 0.05 * (len(found) - 1)),
        began=min(silence.since for silence in found),
        share=1.0,  # without the source there is nothing that the query could do
    )


def _unanswered(view: QueryView) -> Silence | None:
    asked = view.lag.asked
    if asked is None or asked.error is None or asked.unreachable_since is None or view.now - asked.at > STALE_SECONDS:
        return None
    seconds = view.now - asked.unreachable_since
    answered_before = bool(view.history.earliest_times)  # else it is ledgerops that was given a wrong address
    if (
        seconds < MIN_SILENCE_SECONDS
        or not answered_before
        or _heard_since(view) > asked.unreachable_since + GRACE_SECONDS
    ):
        return None
    evidence = (
        Evidence(REACHABLE.name, 0.0, "count", "1", asked.at),
        Evidence("seconds_without_answer", seconds, "seconds", f"< {MIN_SILENCE_SECONDS:g}", view.now),
    )
    return Silence(
        f"the broker has not answered for {seconds:.0f} s ({asked.error})", asked.unreachable_since, evidence, 0.9
    )


def _heard_since(view: QueryView) -> float:
    """When the query itself last got an answer of its source: then only ledgerops cannot reach the broker."""
    history = view.history
    began = history.last.started if history.last is not None else 0.0
    return max(began, (history.last_seen or 0.0) if history.idle_since is not None else 0.0)


def _waits(view: QueryView) -> Silence | None:
    running, seconds = view.history.running, view.run.running_seconds
    if running is None or seconds is None or not WAITING.search(running.message):
        return None
    longest = max((batch.phases.get("latest_offset", 0.0) for batch in view.batches), default=0.0)
    limit = max(MIN_SILENCE_SECONDS, MIN_TIMES_LONGEST * longest)
    if seconds < limit:
        return None
    evidence = (Evidence(RUNNING.name, seconds, "seconds", f"< {limit:.0f}", view.now),)
    answers = (
        view.lag.asked is not None
        and view.lag.asked.error is None
        and view.lag.asked.at >= running.since + MIN_SILENCE_SECONDS
    )
    tail = ", although the broker answers ledgerops" if answers else ""
    return Silence(
        f"the query has waited {seconds:.0f} s for offsets{tail}", running.since, evidence, 0.6 if answers else 0.8
    )


def _gave_up(view: QueryView) -> Silence | None:
    ended = view.history.ended
    if ended is None or ended.exception is None or not TIMED_OUT.search(ended.exception):
        return None
    failures = float(max(1, sum(view.history.failures.values())))
    evidence = (Evidence("ledgerops_query_failures_total", failures, "count", "0", ended.at),)
    return Silence(f"the query gave up waiting for the broker: {first_line(ended.exception)}", ended.at, evidence, 0.8)


def acquit(view: QueryView) -> str | None:
    asked = view.lag.asked
    if asked is None or asked.error is not None:
        return None
    return f"the broker answered ledgerops {max(0.0, view.now - asked.at):.0f} s ago"


RULE = Rule(
    "source-unreachable",
    "critical",
    check,
    __doc__,
    ("query-stuck", "query-failed", "falling-behind", "trigger-overrun", "slow-source"),
    acquit,
    saves=False,
    linger=0.0,
    outlives=True,
    at_rest=True,
)
