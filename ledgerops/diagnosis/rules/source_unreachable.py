"""Source unreachable: the broker does not answer.

Meaning: ledgerops asks the broker for its offsets and gets no answer, or the query or its tasks wait for one, or it has
    just failed because of that.
Impact: nothing is read, and the number of new rows is unknown. Spark's Kafka source asks three times, a minute each,
    and then fails the query; its tasks give up after two minutes without rows. Its options may allow more.
Diagnosis: 1. `ledgerops_source_reachable{app="APP",query="QUERY"}` is 0 while the broker does not answer ledgerops. If
    it is 1 and only `ledgerops_batch_running_seconds{app="APP",query="QUERY"}` grows, the broker answers ledgerops but
    not the query: check the credentials and addresses of the query.
    2. On the machine of the driver run `kafka-broker-api-versions.sh --bootstrap-server SERVERS`. Without an answer,
    check the broker and the network.
    3. If it answers there, check name resolution and the firewall between the executors and every broker of the
    cluster.
Mitigation: bring the broker back; the query continues by itself if it has not failed yet. If it has, start it with the
    same checkpoint: nothing is lost as long as the topic keeps the records.
Evidence:
    ledgerops_source_reachable: 0, because the newest record `offsets` has an `error`
    seconds_without_answer: now - unreachable_since of that record
    ledgerops_batch_running_seconds: now - `since` of the newest batch_running record that waits for offsets, or whose
        tasks wait in Kafka's client by the newest two `stacks` records
    ledgerops_query_failures_total: number of `terminated` records of the query with an exception
"""

from collections.abc import Iterator

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.source_silence import silences
from ledgerops.diagnosis.rule import LATE, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Finding, Remedy
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS


def check(view: QueryView) -> Iterator[Finding]:
    if view.history.ended is not None and view.history.ended.exception is None:
        return
    found = silences(view)
    if not found:
        return
    asked = view.lag.asked
    names = [source.name for source in view.history.last.sources] if view.history.last is not None else []
    yield Finding(
        "; ".join(silence.what for silence in found),
        Component("source", ",".join(names) or view.query, asked.error if asked is not None else None),
        tuple(each for silence in found for each in silence.evidence),
        (
            first_step("source-unreachable", GENERAL, "the query continues by itself unless it has failed already"),
            Remedy(
                "let the source wait longer: raise kafka.default.api.timeout.ms and kafkaConsumer.pollTimeoutMs",
                "by default the driver gives up after three tries of a minute, a task after two minutes without rows",
                safe=False,
            ),
        ),
        confidence=0.95 if len(found) > 1 else found[0].confidence,
        began=min(silence.since for silence in found),
        share=1.0,  # without the source there is nothing that the query could do
    )


def ruled_out(view: QueryView) -> str | None:
    asked = view.lag.asked
    if asked is None or asked.error is not None or view.now - asked.at > WINDOW_SECONDS:
        return None
    return f"the broker answered ledgerops {duration(max(0.0, view.now - asked.at))} ago"


EXPLAINS = ("query-stuck", "query-failed", *LATE, "slow-source")
RULE = Rule(
    "source-unreachable", "critical", check, __doc__, EXPLAINS, ruled_out, linger=0.0, outlives=True, at_rest=True
)
