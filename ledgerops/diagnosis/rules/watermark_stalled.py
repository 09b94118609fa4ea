"""Watermark stalled: the watermark does not advance although rows arrive.

Meaning: a query with several inputs uses the minimum of their watermarks. One input sends nothing, or nothing newer, so
    the watermark of the whole query stops, while the event time of the other inputs advances.
Impact: windows and outer joins emit no results. State that waits for the watermark is not removed, so state, memory and
    batch time grow. Nothing is lost: once the input sends again, all delayed results are emitted at once.
Diagnosis: 1. `sum by (source) (ledgerops_input_rows_per_second{query="QUERY"})` shows which source sends nothing: it
    stops the watermark.
    2. If every source sends rows, one of them sends only old ones, or a filter in one branch of the query removes its
    new rows. Compare the newest event time of the topics.
    3. `ledgerops_state_rows{query="QUERY"}` shows how fast the state grows meanwhile, and so how long you can wait.
Mitigation: find out why that input is silent, and have its producer send a heartbeat row when it has no data. If
    results without that input are better than none, restart the query with
    `spark.sql.streaming.multipleWatermarkPolicy=max`: late rows of the silent input are then dropped.
Evidence:
    watermark_still_seconds: timestamp of the newest batch minus that of the first batch of the run with the same
        eventTime.watermark.
    rows_read_meanwhile: sum of numInputRows of the batches after that first one.
    rows_of_the_silent_input: the same sum of sources[].numInputRows of the named source, if a source is the cause.
    silent_input_behind_seconds: the largest event_time_max that `instrument` observed in the newest batch that has any,
        minus that of the named input, if an observed input is the cause.
    watermark_behind_rows_seconds: eventTime.max of the newest batch minus eventTime.watermark, minus the largest
        allowed lateness; absent if the first watermark of the plan belongs to the silent input.
    event_time_advance_seconds: if there has been no watermark since the run began: eventTime.max of the newest batch
        minus that of the first batch with rows.
    watermark_usually_still_seconds: the longest earlier time for which the watermark did not advance, computed like the
        first.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from ledgerops.common.format import counted
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.observed_metrics import OBSERVATION
from ledgerops.model.records import Progress
from ledgerops.model.spark_progress import parse_instant
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_STILL_SECONDS = 8.0  # an input may be silent for a batch or two
MIN_TIMES_USUAL = 2.0  # over the longest earlier time without an advance: an input with few rows is often silent
BRANCH_SECONDS = 30.0  # between watermark and rows, beyond the delay, where no input is silent
BRANCH_BATCHES = 8
NO_WATERMARK_SECONDS = 15.0  # after the first rows: Spark sets the first watermark one batch after them
MIN_BATCHES = 4  # with rows, after the first that had this watermark: that takes four intervals, too


class Stall(NamedTuple):
    """A time in which rows arrived and the watermark did not advance."""

    batches: Sequence[Progress]  # with rows, since the watermark stopped
    seconds: float
    rows: int  # that arrived
    usual: float  # longest seconds without an advance before
    ahead: float | None  # of the newest row before what the watermark would have to be
    never: bool = False  # the run never had one: `ahead` is how far the event time of its rows has come


class Silent(NamedTuple):
    """The input that stops the watermark."""

    kind: str  # "source", or "input" for an observation
    name: str
    words: str
    evidence: Evidence


def check(view: QueryView) -> Iterator[Finding]:
    stall = _stall(view)
    if stall is None:
        return
    source, observation = _silent_source(stall), _silent_observation(view, stall)
    silent = source or observation or _silent_branch(view, stall)
    if silent is None:
        return
    known = f" (observed as {observation.name})" if source and observation else ""
    newest = stall.batches[-1]
    at, limit = newest.ended, max(MIN_STILL_SECONDS, MIN_TIMES_USUAL * stall.usual)
    evidence = [
        Evidence("watermark_still_seconds", stall.seconds, "seconds", f"< {limit:.0f}", at),
        Evidence("rows_read_meanwhile", float(stall.rows), "rows", "0", at),
        silent.evidence,
    ]
    if not stall.never:
        evidence.append(Evidence("watermark_usually_still_seconds", stall.usual, "seconds", "the usual", at))
    if stall.ahead is not None and not stall.never and silent.evidence.name != "watermark_behind_rows_seconds":
        evidence.append(Evidence("watermark_behind_rows_seconds", stall.ahead, "seconds", "about 0", at))
    began = stall.batches[0].started
    rows = [sum(operator.rows for operator in batch.operators) for batch in (stall.batches[0], newest)]
    grows = f"; state grew from {rows[0]:,} to {rows[1]:,} rows meanwhile" if rows[1] > rows[0] else ""
    stands = "there has been no watermark" if stall.never else "the watermark has not advanced"
    yield Finding(
        f"{stands} for {stall.seconds:.0f} s while {counted(stall.rows, 'row')} arrived: "
        f"{silent.name}{known}{silent.words} {'keeps it from starting' if stall.never else 'stops it'}{grows}",
        Component(silent.kind, silent.name, f"has the lowest watermark{known}"),
        tuple(evidence),
        (
            Remedy(
                f"find out why {silent.name}{known} sends nothing new; have its producer send a heartbeat row",
                "the watermark of the query is the lowest of its inputs' watermarks",
            ),
            Remedy(
                "restart the query with the policy max, if results without that input are better than none",
                "late rows of the silent input are then dropped",
                command="spark.conf.set('spark.sql.streaming.multipleWatermarkPolicy', 'max')",
                safe=False,
            ),
        ),
        confidence=min(0.95, 0.7 + 0.05 * len(stall.batches) * (1.0 if silent.kind == "source" else 0.5)),
        began=began,
    )


@once
def _stall(view: QueryView) -> Stall | None:
    """The time without an advance of the watermark, if it is longer than ever before and rows arrived throughout."""
    last = view.last
    if last is None or view.history.idle_since is not None:
        return None
    if last.watermark is None:
        return _never_began(view, last)
    if len(view.batches) <= MIN_BATCHES or view.batches[-MIN_BATCHES - 1].watermark != last.watermark:
        return None
    by_watermark = [list(batches) for mark, batches in groupby(view.batches, lambda batch: batch.watermark) if mark]
    standing = by_watermark[-1]
    seconds = last.started - standing[0].started
    with_rows = [batch for batch in standing if batch.rows > 0]
    if len(by_watermark) < 3 or len(with_rows) < MIN_BATCHES or last.rows == 0:
        return None
    usual = max(later[0].started - earlier[0].started for earlier, later in pairwise(by_watermark))
    if seconds < max(MIN_STILL_SECONDS, MIN_TIMES_USUAL * usual):
        return None
    delay = max(view.plan.watermarks.values(), default=0.0)
    ahead = last.event_time_max - last.watermark - delay if last.event_time_max is not None else None
    if ahead is not None and ahead < MIN_STILL_SECONDS:
        return None  # the event time of the rows does not advance
    return Stall(with_rows, seconds, sum(batch.rows for batch in standing[1:]), usual, ahead)


def _never_began(view: QueryView, last: Progress) -> Stall | None:
    """Rows with event times arrive, and no batch had a watermark: Spark sets it by the batch after the first rows."""
    if any(batch.watermark is not None for batch in view.batches):
        return None
    timed = [batch for batch in view.batches if batch.rows > 0 and batch.event_time_max is not None]
    if len(timed) <= MIN_BATCHES or last.rows == 0 or last.event_time_max is None:
        return None
    seconds = last.started - timed[0].started
    if seconds < NO_WATERMARK_SECONDS:
        return None
    rows = sum(batch.rows for batch in view.batches[1:])
    since = last.started - view.batches[0].started
    return Stall(timed, since, rows, 0.0, last.event_time_max - (timed[0].event_time_max or 0.0), never=True)


def _silent_source(stall: Stall) -> Silent | None:
    """The sources without a row since then, while others had some."""
    rows: dict[str, int] = {}
    for batch in stall.batches[1:]:
        for source in batch.sources:
            rows[source.name] = rows.get(source.name, 0) + source.rows
    silent = [name for name, count in rows.items() if count == 0]
    if not silent or len(silent) == len(rows):
        return None
    name = ", ".join(sorted(silent))
    evidence = Evidence("rows_of_the_silent_input", 0.0, "rows", "> 0", stall.batches[-1].ended)
    return Silent("source", name, ", which sent none,", evidence)


def _silent_observation(view: QueryView, stall: Stall) -> Silent | None:
    """The observed input whose newest event time did not move since then, while that of another did."""
    first: dict[str, float] = {}
    for batch in view.batches:  # an input without rows observes no time
        if batch.started > stall.batches[0].started:
            break
        first |= _newest_by_input(batch)
    newest = _newest_by_input(stall.batches[-1])
    if len(first) < 2 or not newest:
        return None
    moved = {name: at - first[name] for name, at in newest.items() if name in first}
    still = [name for name in first if moved.get(name, 0.0) <= 0]
    if len(still) != 1:
        return None
    name = still[0]
    behind = max(newest.values()) - newest.get(name, first[name])
    if behind < MIN_STILL_SECONDS:
        return None
    evidence = Evidence(
        "silent_input_behind_seconds", behind, "seconds", f"< {MIN_STILL_SECONDS:g}", stall.batches[-1].ended
    )
    return Silent("input", name, f", observed {behind:.0f} s behind the other,", evidence)


def _newest_by_input(batch: Progress) -> Mapping[str, float]:
    """Newest event time of each input that `instrument` observes under its own name. They are in the session's time
    zone, so only their differences are meaningful."""
    return {
        name.removeprefix(f"{OBSERVATION}_"): at
        for name, row in batch.observed.items()
        if name.startswith(OBSERVATION) and (at := parse_instant(row.get("event_time_max"))) is not None
    }


def _silent_branch(view: QueryView, stall: Stall) -> Silent | None:
    """No input is silent and newer rows arrive, but one branch of the query passes none of them on.

    A filter that lets no row through, or a topic whose rows are all of another kind, stops the watermark like a silent
    source. Only the plan of the query shows which branch it is.
    """
    if stall.ahead is None or stall.ahead < BRANCH_SECONDS or len(stall.batches) < BRANCH_BATCHES:
        return None
    columns = sorted(view.plan.watermarks)
    which = f" (the watermarks are on {', '.join(columns)})" if len(columns) > 1 else ""
    name = "event_time_advance_seconds" if stall.never else "watermark_behind_rows_seconds"
    evidence = Evidence(name, stall.ahead, "seconds", f"< {BRANCH_SECONDS:g}", stall.batches[-1].ended)
    return Silent("input", "one input of the query", f"{which}, which passes on no newer rows,", evidence)


RULE = Rule("watermark-stalled", "warning", check, __doc__, ("freshness-breach", "state-growth"), linger=0.0)
