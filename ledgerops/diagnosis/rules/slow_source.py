"""Slow source: a batch spends its time asking the source and waiting for its rows.

Meaning: the phases `latest_offset` and `get_batch`, and the tasks that read, wait several times as long as before, and
    this explains why the batch takes longer. The rest of the query is as fast as before. Without a healthy past, these
    phases take most of each batch.
Impact: batches outlast the trigger interval although the cores are idle, and the query falls behind.
Diagnosis: 1. `sum by (phase) (rate(ledgerops_batch_phase_seconds_total{query="QUERY"}[5m]))` shows where the time goes.
    A long `latest_offset` or `get_batch` means that the broker answers slowly. A long `add_batch` with reading tasks
    that hardly use CPU means slow fetching.
    2. Check the request latency of the broker and its quotas (`kafka-configs.sh --describe --entity-type clients`). A
    quota that is reached throttles this query alone; high latency affects all clients.
    3. If the broker is fast, test the network between it and the query (`ping`, a transfer of a large file). Each task
    sends several requests, so the latency of one request adds up.
Mitigation: make the trigger interval longer if results may be that old: the query then sends fewer requests. Then
    reduce the load on the broker, raise the quota, or move the query closer to the broker. More cores do not help.
Evidence:
    source_phases_seconds_median: median over the latest batches of (durationMs.latestOffset + durationMs.getBatch) /
        1000. The latest batches are up to 3 newest ones in a row that took more than 1.33 times the interval (1.05
        times if 4 of 5 batches of the last 20 s did, the first of these began before, and one of the newest 2 took 0.8
        times as long as the longest). Without an interval: the newest 3; of a run of a few batches: the newest 3
        without its first. If
        reading_wait_seconds_median is given, only those with a `tasks` record
    usual_source_phases_seconds: the same over the usual batches: all batches of the run before the newest 4, without
        its first 10 s, that had rows and took at most 1.1 times the interval. Without an interval, the newest ones that
        took 1.5 times as long for their rows as the median of these do not count. If these are fewer than 5: the faster
        half of the batches with rows
    reading_wait_seconds_median: median over the latest batches of the wall time of the first stage that has records and
        reads no shuffle, times 1 - (cpu_seconds + gc_seconds + python_seconds of the batch) / run_seconds
    usual_reading_wait_seconds: the same over the usual batches that have a `tasks` record
    source_share: median over the latest batches of source phases plus reading wait (those that are given), divided by
        durationMs.triggerExecution / 1000
    ledgerops_batch_running_seconds: now minus `since` of the newest `batch_running` record; given instead of the above
        while the first slow batch still runs
    broker_answer_seconds: median of `seconds` of the newest 3 `offsets` records that have it
    usual_broker_answer_seconds: median of `seconds` of the `offsets` records before the newest 15, of at most 60
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import batch_time, harm, overload, source_wait, starvation, strain
from ledgerops.diagnosis.criteria import OVER_RATIO
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.latency import RUNNING
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

OTHERS = ("query_planning", "wal_commit", "commit_offsets")  # a machine that is too busy slows these down, too
MIN_SOURCE_SHARE = 0.3  # of the batch
MIN_EXCESS_SHARE = 0.5  # of the time by which the batch became longer
MIN_SECONDS_FROM_BIRTH = 1.0  # in a batch, where no past shows what is usual
MIN_RUNNING_INTERVALS = 2.0  # a batch that has run for that long, and for MIN_TIMES_USUAL the usual time, is long
MIN_ALONE_RATIO = 2.0  # times a slow answer, where nothing else shows the cause; the same again on a busy machine
REMEDIES = (
    Remedy(
        "check the broker's request latency, its quotas for this client, and the network to it",
        "more cores do not help while the query waits for the source",
    ),
    Remedy("make the trigger interval longer if results may be that old", "the query then sends fewer requests"),
)


class Slow(NamedTuple):
    """What a batch waits for the source: `asking` in the driver, for `rows` in tasks; None where it is not known."""

    asking: source_wait.Wait
    rows: source_wait.Wait | None
    answer: source_wait.Wait | None  # what ledgerops itself waits for an answer of the broker, when that is slow
    duration: float
    share: float  # of the batch
    began: float
    excess: float  # seconds that are the source's and more than usual

    @property
    def seconds(self) -> float:
        """Seconds of a batch that wait for the source, in the driver and in tasks."""
        return self.asking.now + (self.rows.now if self.rows else 0.0)


def check(view: QueryView) -> Iterator[Finding]:
    slow = _slow(view)
    if view.last is None:
        return
    if slow is None:
        yield from list(_while_running(view)) or _always(view)
        return
    at = view.last.ended
    evidence = [
        Evidence("source_phases_seconds_median", slow.asking.now, "seconds", _limit(slow.asking), at),
        Evidence("usual_source_phases_seconds", slow.asking.usual, "seconds", "the usual", at),
        Evidence("source_share", slow.share, "ratio", f"< {MIN_SOURCE_SHARE:g}", at),
    ]
    if slow.rows is not None:
        evidence.append(Evidence("reading_wait_seconds_median", slow.rows.now, "seconds", _limit(slow.rows), at))
        evidence.append(Evidence("usual_reading_wait_seconds", slow.rows.usual, "seconds", "the usual", at))
    if slow.answer is not None:
        expected = f"< {max(source_wait.MIN_ANSWER_SECONDS, source_wait.MIN_ANSWER_RATIO * slow.answer.usual):.2f}"
        evidence.append(Evidence("broker_answer_seconds", slow.answer.now, "seconds", expected, at))
        evidence.append(Evidence("usual_broker_answer_seconds", slow.answer.usual, "seconds", "the usual", at))
    yield Finding(
        _summary(slow),
        _component(view),
        tuple(evidence),
        REMEDIES,
        confidence=min(0.95, 0.5 + 0.25 * slow.share + (0.1 if slow.rows else 0.0) + (0.15 if slow.answer else 0.0)),
        began=slow.began,
        share=min(1.0, slow.excess / slow.duration),
    )


def _while_running(view: QueryView) -> Iterator[Finding]:
    """The first slow batch may take minutes; while it runs, only the broker's answers to ledgerops show the cause."""
    usual, running = source_wait.usual_batches(view), view.run.running_seconds
    if not usual or running is None:
        return
    usually = median(batch.duration for batch in usual)
    if running < max(MIN_RUNNING_INTERVALS * (view.trigger.interval or 0.0), source_wait.MIN_TIMES_USUAL * usually):
        return
    answer = source_wait.slow_answers(view)
    certain = MIN_ALONE_RATIO * (MIN_ALONE_RATIO if starvation.machine_busy(view) else 1.0)
    if answer is None or answer.now < certain * max(
        source_wait.MIN_ANSWER_SECONDS, source_wait.MIN_ANSWER_RATIO * answer.usual
    ):
        return
    yield Finding(
        f"a batch has run for {running:.0f} s (usually {usually:.1f} s), and the broker answers ledgerops in "
        f"{answer.now:.2f} s (usually {answer.usual:.2f} s)",
        _component(view),
        (
            Evidence(RUNNING.name, running, "seconds", f"< {source_wait.MIN_TIMES_USUAL * usually:.1f}", view.now),
            Evidence("broker_answer_seconds", answer.now, "seconds", f"< {source_wait.MIN_ANSWER_SECONDS:g}", view.now),
            Evidence("usual_broker_answer_seconds", answer.usual, "seconds", "the usual", view.now),
        ),
        REMEDIES,
        confidence=0.6,
        began=view.now - running,
    )


def _always(view: QueryView) -> Iterator[Finding]:
    """Whatever the past: asking the source takes most of each of the newest batches."""
    newest = _latest(view) or view.baseline.settled[-RECENT_BATCHES:]
    if view.last is None or len(newest) < batch_time.MIN_PAIRS or not harm.examined(view):
        return
    shares = [source_wait.driver_seconds(batch) / batch.duration for batch in newest if batch.duration > 0]
    now, duration = median(map(source_wait.driver_seconds, newest)), median(batch.duration for batch in newest)
    if min(shares, default=0.0) < batch_time.MIN_MAIN_SHARE or now < MIN_SECONDS_FROM_BIRTH:
        return
    share = median(shares)
    yield Finding(
        f"{now:.1f} s of a batch of {duration:.1f} s are spent asking the source",
        _component(view),
        (
            Evidence("source_phases_seconds_median", now, "seconds", f"< {MIN_SECONDS_FROM_BIRTH:g}", view.last.ended),
            Evidence("source_share", share, "ratio", f"< {batch_time.MIN_MAIN_SHARE:g}", view.last.ended),
        ),
        REMEDIES,
        confidence=0.5 + 0.3 * share,
        began=newest[0].started,
        share=min(1.0, share),
    )


def _component(view: QueryView) -> Component:
    names = [source.name for source in view.last.sources] if view.last is not None else []
    return Component("source", ",".join(names) or view.query)


def _limit(wait: source_wait.Wait) -> str:
    return f"< {max(source_wait.MIN_SECONDS, source_wait.MIN_TIMES_USUAL * wait.usual):.1f}"


def _summary(slow: Slow) -> str:
    usual = slow.asking.usual
    if slow.rows is None:
        what = "are spent asking the source"
    else:
        what = f"are spent waiting for the source: {slow.asking.now:.1f} s for offsets, {slow.rows.now:.1f} s for rows"
        usual += slow.rows.usual
    answer = ""
    if slow.answer is not None:
        answer = f"; it answers ledgerops in {slow.answer.now:.2f} s (usually {slow.answer.usual:.2f} s)"
    return f"{slow.seconds:.1f} s of a batch of {slow.duration:.1f} s {what}; the usual is {usual:.1f} s{answer}"


@once
def _slow(view: QueryView) -> Slow | None:
    """Three of the latest batches waited long, or two if more than one measurement shows it."""
    latest = _latest(view)
    usual = source_wait.usual_batches(view) if len(latest) > 1 else []
    if not usual:
        return None
    interval = view.trigger.interval or 0.0
    harmed = strain.strained(view) or overload.growth(view) or (interval and strain.outlasted(view, interval))
    several = len(latest) == RECENT_BATCHES and bool(harmed)
    return _judged(view, usual, latest, alone=several)


def _latest(view: QueryView) -> Sequence[Progress]:
    """The newest batches, one after the other, that outlast their interval."""
    newest, interval = view.baseline.recent, view.trigger.interval
    if not interval:
        return newest if len(newest) == RECENT_BATCHES else []
    ratio = OVER_RATIO if strain.outlasted(view, interval) else strain.SOON_RATIO
    found = list(takewhile(lambda batch: batch.duration > ratio * interval, reversed(newest)))
    return found[::-1]


def _judged(view: QueryView, usual: Sequence[Progress], latest: Sequence[Progress], alone: bool) -> Slow | None:
    """`alone`: whether one measurement is enough."""
    asked = [source_wait.driver_seconds(batch) for batch in latest]
    usually = median(source_wait.driver_seconds(batch) for batch in usual)
    long = source_wait.Wait(median(asked), usually).long and min(asked[-2:]) >= source_wait.MIN_SECONDS
    answer = source_wait.slow_answers(view)
    waits = source_wait.task_waits(view, latest, seconded=long or answer is not None)
    rows = (
        source_wait.longer_wait_for_rows(view, list(waits.values()))
        if len(waits) >= batch_time.MIN_PAIRS or long or answer
        else None
    )
    if sum((long, rows is not None, answer is not None)) < (1 if alone else 2) or not (long or rows):
        return None
    if _starved(view, usual, latest):
        return None
    if rows is not None:
        latest = [batch for batch in latest if batch.batch_id in waits]
    asking = source_wait.Wait(median(source_wait.driver_seconds(batch) for batch in latest), usually)
    duration = median(batch.duration for batch in latest)
    held = waits if rows else {}
    share = median((source_wait.driver_seconds(each) + held.get(each.batch_id, 0.0)) / each.duration for each in latest)
    longer = duration - median(batch.duration for batch in usual)
    excess = asking.now - asking.usual + (rows.now - rows.usual if rows else 0.0)
    if excess < MIN_EXCESS_SHARE * longer or share < MIN_SOURCE_SHARE:
        return None
    return Slow(asking, rows, answer, duration, share, latest[0].started, excess)


def _starved(view: QueryView, usual: Sequence[Progress], latest: Sequence[Progress]) -> bool:
    """Whether a busy machine makes all phases longer, the source's among them."""
    if not starvation.machine_busy(view):
        return False
    before, now = (
        median(sum(batch.phases.get(phase, 0.0) for phase in OTHERS) for batch in some) for some in (usual, latest)
    )
    return now >= starvation.MAX_OTHERS_RATIO * max(before, starvation.MIN_OTHERS_SECONDS)


def acquit(view: QueryView) -> str | None:
    latest = view.baseline.recent
    if not latest or _slow(view) is not None:
        return None
    spent, duration = median(map(source_wait.driver_seconds, latest)), median(batch.duration for batch in latest)
    if spent >= MIN_SOURCE_SHARE * duration:
        return None
    answers = [heads.seconds for heads in view.history.heads if heads.seconds is not None]
    newest = answers[-source_wait.NEWEST_SAMPLES :]
    answer = f", and the broker answers ledgerops in {median(newest):.2f} s" if newest else ""
    return f"asking the source takes {spent:.1f} s of a batch of {duration:.1f} s{answer}"


RULE = Rule(
    "slow-source",
    "warning",
    check,
    __doc__,
    ("query-stuck", "falling-behind", "trigger-overrun", "late-data"),
    acquit,
    needs_harm=True,
)
