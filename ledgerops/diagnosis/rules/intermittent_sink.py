"""Intermittent sink: most batches are fast, but some wait long for the sink.

Meaning: a few batches take several times as long as the rest for the same number of rows. The extra time is in
    `add_batch` while no task computes: the target of the sink sometimes stalls (a lock, throttling, a leader election,
    a flush).
Impact: medians look healthy, but the freshness objective is missed: the rows of a slow batch, and those that arrive
    meanwhile, are late. Any further problem makes the query fall behind.
Diagnosis: 1. Compare the median and the 0.95 quantile of `ledgerops_batch_duration_seconds{app="APP",query="QUERY"}`
    (panel "Batch duration"). If they are close, the slow batches have ended.
    2. Check the interval in the finding. Regular intervals point to a timer at the target (vacuum, compaction, a
    scheduled job), irregular ones to other clients. Each tenth batch of a sink of files: the sink's own log, which
    lists all files that it ever wrote and is then written anew as a whole.
    3. Check the target at the times of the slow batches: its slow log, locks, throttling. If it shows nothing, check
    the network to it.
Mitigation: move or limit the job at the target that causes the stalls. Write with a timeout and a retry, to another
    node of the target if there is one. If the target throttles, use a smaller connection pool. More cores do not help.
    The log of a sink of files stays short with its option `retention`, or write to a table format.
Evidence:
    slow_batches: number of slow batches in W. W = the newest 60 batches of the run that began in the last 120 s or
        30 trigger intervals, whichever is longer, without those of its first 10 s; if only one or two slow ones are
        left, without the first one only. A batch is slow if it takes longer than all of: 3 times the median of W, that
        median + 1 s, 1.05 times the interval, and 2 x that median x max(1, its numInputRows / their median in W); and
        if its waiting share of the excess, see below, is at least 0.5, as it is of most that take so long
    batches: number of batches in W
    usual_batch_seconds: median of durationMs.triggerExecution / 1000 over W
    slow_batch_excess_seconds: median duration of the slow batches, minus usual_batch_seconds
    slow_batch_spacing_seconds: median time between the starts of slow batches, without those that follow a batch which
        takes as long directly
    waiting_share_of_excess: median over the slow batches of what no task computes in (driver_before, driver_between,
        after_tasks, sink_wait and waiting of the parts of a batch, less its uneven parts), divided by (duration -
        usual_batch_seconds); of a batch whose tasks are not known the median of the others, and where none are known:
        (durationMs.addBatch / 1000 - its median over W) in its place
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.context import function_place, sink_name
from ledgerops.diagnosis.facts.slow_writes import MIN_EVENTS, MIN_JUDGED_BATCHES, explained, rewrites_log, slow_writes
from ledgerops.diagnosis.limits import LONG_SECONDS, MOSTLY
from ledgerops.diagnosis.rule import LATE, Rule, confidence
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView

RHYTHMS = {True: "periodic", False: "irregular", None: None}
RETRY = Remedy("write with a timeout and a retry", "a stalled write then no longer blocks the batch", safe=False)
SHORTER_LOG = Remedy(
    "set the option `retention` of the sink, or write to a table format",
    "entries older than that leave the log, and Spark no longer reads their files from this folder",
    safe=False,
)


def check(view: QueryView) -> Iterator[Finding]:
    found = slow_writes(view)
    if found is None or explained(view, found):
        return
    at, line = found.batches[-1].ended, function_place(view, since=found.events[0].started)
    log = rewrites_log(view, found)
    yield Finding(
        f"{len(found.slow)} of the last {len(found.batches)} batches waited about {duration(found.excess)} for the "
        f"sink{f' (mostly at {line})' if line else ''}, {found.rhythm}; a usual batch takes {duration(found.usual)}"
        + ("; each is a batch in which the sink writes its whole log, `_spark_metadata`, anew" if log else ""),
        Component("sink", sink_name(view), "log" if log else RHYTHMS[found.regular]),
        (
            Evidence("slow_batches", float(len(found.slow)), "count", "0", at),
            Evidence("batches", float(len(found.batches)), "count", f">= {MIN_JUDGED_BATCHES}", at),
            Evidence("usual_batch_seconds", found.usual, "seconds", "the usual", at),
            Evidence("slow_batch_excess_seconds", found.excess, "seconds", f"< {LONG_SECONDS:g}", at),
            Evidence("slow_batch_spacing_seconds", median(found.spacings), "seconds", "none", at),
            Evidence("waiting_share_of_excess", found.waiting, "ratio", f"< {MOSTLY:g}", at),
        ),
        (
            first_step("intermittent-sink", "log" if log else GENERAL, "more cores do not help while the write waits"),
            SHORTER_LOG if log else RETRY,
        ),
        confidence=confidence(len(found.events), MIN_EVENTS),
        began=found.events[0].started,
        at_most="critical" if view.trigger.interval else "info",  # nobody was promised a rhythm
        share=min(1.0, found.lost / sum(batch.duration for batch in found.batches)),
        saving_seconds=found.lost / len(found.batches),
    )


RULE = Rule("intermittent-sink", "warning", check, __doc__, ("slow-sink", *LATE))
