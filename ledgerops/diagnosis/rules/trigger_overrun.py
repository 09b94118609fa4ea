"""Trigger overrun: batches outlast the trigger interval, or runs the period of their scheduler.

Meaning: a batch takes longer than the trigger interval, so the next batch starts late. The query has no spare time
    left. Of a query that ends by itself (`availableNow`) a run takes longer than the time between two starts, and half
    as long again as its rows usually take: this needs three earlier runs that ended well, in half of that time, and
    starts that are a minute apart at least (else a loop starts the next run when this one has ended).
Impact: results are later than the trigger interval suggests. With slightly more load, the backlog starts to grow.
Diagnosis: 1. Read the root cause named with this finding. `ledgerops diagnose http://INSTANCE --query QUERY` also shows
    the causes that were ruled out.
    2. Without one, find the phase that takes the time with
    `sum by (phase) (rate(ledgerops_batch_phase_seconds_total{app="APP",query="QUERY"}[5m]))`. Mostly `add_batch` means
    tasks or the sink: see `slow-sink`, `key-skew` and `input-overload`.
    3. Mostly `query_planning`, `wal_commit` or `commit_offsets` means the fixed cost of each batch: compare
    `ledgerops_batch_overhead_seconds{app="APP",query="QUERY"}` with the interval.
Mitigation: if results may be that old, set the interval to the time that a usual batch takes. Otherwise remove the root
    cause, or give the query more cores.
Evidence:
    owed_share: by how much batches were longer than the triggers that fell into them, over their time: 1 - n x interval
        / the sum of what n batches took, each at least the interval. Late = longer than 1.05 times the interval, and
        not one that left fewer offsets unread than the batch before it. n = of the batches of the last two minutes (at
        least 5) those from a late one on, with 3 late ones, 60 s and a share of 0.2, with 2 late ones, 40 s and a
        share of 0.67, or with one, 40 s and a share of 0.9: the longest such row whose share is 0.7 of the largest
    batch_seconds_median: median of durationMs.triggerExecution / 1000 over the late ones of these batches, the running
        one included
    ledgerops_trigger_interval_seconds: the trigger interval of the plan; if unknown, that on whose multiples those
        batches begin that had time to wait
    ledgerops_last_batch_duration_seconds: durationMs.triggerExecution / 1000 of the newest batch
    run_seconds: of a query that ends by itself: the end of its newest batch minus the start of its run's first
    run_period_seconds: the lower quartile of the times between the starts of the first batches of its runs
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.former_runs import LateRun, late_run
from ledgerops.diagnosis.facts.longer_interval import longer_interval
from ledgerops.diagnosis.harm import Proof, owes_for
from ledgerops.diagnosis.limits import SHOWN_BATCHES
from ledgerops.diagnosis.rule import LIKELY, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.metrics.latency import LAST_BATCH
from ledgerops.metrics.pressure import INTERVAL
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.signals.baseline import OVER_RATIO
from ledgerops.signals.query_view import QueryView

PROOFS = (
    Proof(late=3, owed=0.2, seconds=60.0),  # a burst is over by then; a busy machine makes a query owe less
    Proof(late=2, owed=0.67, seconds=40.0, steady=False),  # so far over that a slow start does not explain it
    Proof(late=1, owed=0.9, seconds=40.0, steady=False),
)


def check(view: QueryView) -> Iterator[Finding]:
    if (run := late_run(view)) is not None:
        yield _of_runs(view, run)
    interval, time = view.trigger.interval, owes_for(view, *PROOFS)
    if not interval or time is None or view.last is None:
        return
    middle, at = median(turn.seconds for turn in time.late), view.now
    usual = median([batch.duration for batch in view.baseline.settled[-SHOWN_BATCHES:]] or [0.0])
    late, count = len(time.late), len(time.turns)
    which, take = (f"{late} of the last {count} batches outlast", "their median is") if count > 1 else (
        "a batch outlasts", "it has taken"
    )  # fmt: skip
    yield Finding(
        f"{which} the interval of {interval:g} s; {take} {duration(middle)}",
        Component("query", view.query),
        (
            Evidence("owed_share", time.share, "ratio", f"< {PROOFS[0].owed:g}", at),
            Evidence("batch_seconds_median", middle, "seconds", f"<= {OVER_RATIO * interval:g}", at),
            Evidence(INTERVAL.name, interval, "seconds", f">= {middle:.1f}", at),
            Evidence(LAST_BATCH.name, view.last.duration, "seconds", f"<= {interval:g}", at),
        ),
        (
            first_step("trigger-overrun", GENERAL, "its cause is there"),
            *(longer_interval(view, middle) if usual > interval else ()),
        ),
        confidence=LIKELY,
        began=time.since,
    )


def _of_runs(view: QueryView, run: LateRun) -> Finding:
    return Finding(
        f"the run took {duration(run.seconds)}, and one begins every {duration(run.period)}; as many rows usually take "
        f"{duration(run.usual)}",
        Component("query", view.query),
        (
            Evidence("run_seconds", run.seconds, "seconds", f"<= {run.period:.0f}", view.now),
            Evidence("run_period_seconds", run.period, "seconds", f">= {run.seconds:.0f}", view.now),
        ),
        (first_step("trigger-overrun", GENERAL, "its cause is there"),),
        confidence=LIKELY,
        began=run.began,
    )


RULE = Rule("trigger-overrun", "warning", check, __doc__, ("falling-behind",))
