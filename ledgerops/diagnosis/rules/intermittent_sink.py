"""Intermittent sink: most batches are fast, but some wait long for the sink.

Meaning: a few batches take several times as long as the rest for the same number of rows. The extra time is in
    `add_batch` while no task computes: the target of the sink sometimes stalls (a lock, throttling, a leader election,
    a flush).
Impact: medians look healthy, but the rows of a slow batch, and those that arrive meanwhile, are late.
Diagnosis: 1. Compare the median and the 0.95 quantile of `ledgerops_batch_duration_seconds{app="APP",query="QUERY"}`.
    If they are close, it is over.
    2. Regular intervals point to a timer at the target (vacuum, compaction, a scheduled job), irregular ones to other
    clients.
    3. Check the target at the times of the slow batches: slow log, locks, throttling; else the network to it.
Mitigation: move or limit the job at the target that causes the stalls. Write with a timeout and a retry, to another
    node of the target if there is one. If the target throttles, use a smaller connection pool. More cores do not help.
Evidence:
    slow_batches: those far longer than the median, where no task computes for half of what they take beyond it
    batches: the newest batches that are judged: at most 60, of two minutes or 30 trigger intervals
    usual_batch_seconds: median of durationMs.triggerExecution / 1000 over these
    slow_batch_excess_seconds: median duration of the slow batches - usual_batch_seconds
    slow_batch_spacing_seconds: median time between the starts of slow batches that follow no other
    waiting_share_of_excess: of what slow batches take beyond the usual, the median share without a task that computes
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.context import function_place, sink_name
from ledgerops.diagnosis.facts.slow_writes import MIN_EVENTS, MIN_JUDGED_BATCHES, explained, slow_writes
from ledgerops.diagnosis.limits import LONG_SECONDS, MOSTLY
from ledgerops.diagnosis.rule import LATE, Rule, confidence
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    found = slow_writes(view)
    if found is None or explained(view, found):
        return
    at, line = found.batches[-1].ended, function_place(view, since=found.events[0].started)
    yield Finding(
        f"{len(found.slow)} of the last {len(found.batches)} batches waited about {duration(found.excess)} for the "
        f"sink{f' (mostly at {line})' if line else ''}, {found.rhythm}; a usual batch takes {duration(found.usual)}",
        Component("sink", sink_name(view), "periodic" if found.regular else "irregular"),
        (
            Evidence("slow_batches", float(len(found.slow)), "count", "0", at),
            Evidence("batches", float(len(found.batches)), "count", f">= {MIN_JUDGED_BATCHES}", at),
            Evidence("usual_batch_seconds", found.usual, "seconds", "the usual", at),
            Evidence("slow_batch_excess_seconds", found.excess, "seconds", f"< {LONG_SECONDS:g}", at),
            Evidence("slow_batch_spacing_seconds", median(found.spacings), "seconds", "none", at),
            Evidence("waiting_share_of_excess", found.waiting, "ratio", f"< {MOSTLY:g}", at),
        ),
        (
            first_step("intermittent-sink", GENERAL, "more cores do not help while the write waits"),
            Remedy("write with a timeout and a retry", "a stalled write then no longer blocks the batch", safe=False),
        ),
        confidence=confidence(len(found.events), MIN_EVENTS),
        began=found.events[0].started,
        at_most="critical" if view.trigger.interval else "info",  # nobody was promised a rhythm
        share=min(1.0, found.lost / sum(batch.duration for batch in found.batches)),
        saving_seconds=found.lost / len(found.batches),
    )


RULE = Rule("intermittent-sink", "warning", check, __doc__, ("slow-sink", *LATE))
