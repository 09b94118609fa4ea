"""Watermark stalled: the watermark does not advance although rows arrive.

Meaning: a query with several inputs uses the minimum of their watermarks. One input sends nothing, or nothing newer, so
    the watermark of the whole query stops, while the event time of the other inputs advances. Or rows keep arriving and
    the newest event time in them does not move: a producer's clock, or the column, has stopped or is no time.
Impact: windows and outer joins emit no results. State that waits for the watermark is not removed, so state, memory and
    batch time grow. Nothing is lost: once the input sends again, all delayed results are emitted at once.
Diagnosis: 1. `sum by (source) (ledgerops_input_rows_per_second{app="APP",query="QUERY"})` shows which source sends
    nothing: it stops the watermark.
    2. If every source sends rows, compare the newest event time of new rows with the clock. If it stands, check the
    producers' clock and the column of `withWatermark`; if only one input is behind, a filter may remove its new rows.
    3. `ledgerops_state_rows{app="APP",query="QUERY"}` shows how fast the state grows meanwhile, and so how long you can
    wait.
Mitigation: find out why that input is silent, and have its producer send a heartbeat row when it has no data. A clock
    or a column that stands is repaired at the producer: windows close when newer rows arrive. If
    results without that input are better than none, start the query with a new checkpoint and
    `spark.sql.streaming.multipleWatermarkPolicy=max` (a checkpoint keeps the policy that it began with): the state is
    lost, and late rows of the silent input are then dropped.
Evidence:
    watermark_still_seconds: timestamp of the newest batch - that of the first of the run with the same
        eventTime.watermark
    watermark_usually_still_seconds: the longest earlier time for which it stood, computed alike; until it has moved 3
        times also of earlier runs with the same checkpoint
    rows_read_meanwhile: sum of numInputRows after that first batch, within the latest 200
    rows_of_the_silent_input: the same of the named source, where a source is the cause
    silent_input_behind_seconds: the largest event_time_max that `instrument` observed - that of the named input
    watermark_behind_rows_seconds: eventTime.max of the newest batch - eventTime.watermark - the largest lateness
    event_time_advance_seconds: without a watermark so far: eventTime.max of the newest batch - that of the first
    event_time_still_seconds: timestamp of the newest batch - that of the batch in which eventTime.max last rose above
        all before; where it is probably no time, of the first with an event time
    event_time_usually_still_seconds: the longest earlier time between two such batches
    newest_event_time_seconds: eventTime.max of the newest batch, where it is probably no time
"""

from collections.abc import Iterator

from ledgerops.common.format import counted, duration
from ledgerops.diagnosis.facts.dropped import dropped
from ledgerops.diagnosis.facts.silent_input import UNNAMED, Silent, silent_input
from ledgerops.diagnosis.facts.stall import Stall, StandingClock, stall, standing_clock
from ledgerops.diagnosis.rule import CLEAR, LIKELY, Rule, confidence
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy, Setting
from ledgerops.signals.query_view import QueryView

LOWEST = "the watermark of the query is the lowest of its inputs' watermarks"
POLICY = Remedy(
    "start with a new checkpoint and the policy max, if results without that input are better than none",
    "the checkpoint keeps the policy; a new one loses the state, and late rows of the silent input are then dropped",
    command="spark.conf.set('spark.sql.streaming.multipleWatermarkPolicy', 'max')",
    safe=False,
    settings=(Setting("spark.sql.streaming.multipleWatermarkPolicy", "max"),),
)
CLOCK_OR_COLUMN = first_step("watermark-stalled", "clock", "the watermark follows the newest event time")
NEWEST_PRODUCER = first_step(
    "watermark-stalled", "newest", "the watermark follows the newest event time, and only older rows arrive"
)


def check(view: QueryView) -> Iterator[Finding]:
    stopped, clock = stall(view), standing_clock(view)
    silent = silent_input(view, stopped) if stopped is not None else None
    if stopped is not None and silent is not None:
        yield _by_input(stopped, silent)
    elif clock is not None and not (clock.older and _all_late(view)):
        yield _by_clock(view, clock)


def _all_late(view: QueryView) -> bool:
    """Whether all rows of the newest batch came behind the watermark, and are dropped: that is no clock that stands."""
    last = view.last
    if last is None or last.watermark is None or last.event_time_max is None:
        return False
    return last.event_time_max < last.watermark and dropped(view) is not None


def _by_input(found: Stall, silent: Silent) -> Finding:
    newest, at, most = found.batches[-1], found.batches[-1].ended, found.limit
    rows = [sum(operator.rows for operator in batch.operators) for batch in (found.batches[0], newest)]
    grows = f"; state grew from {rows[0]:,} to {rows[1]:,} rows meanwhile" if rows[1] > rows[0] else ""
    stands = "there has been no watermark" if found.never else "the watermark has not advanced"
    name = f"{silent.name}{silent.alias}"
    context = "branch" if silent.name == UNNAMED else GENERAL
    still = Evidence("watermark_still_seconds", found.seconds, "seconds", f"< {most:.0f}", at)
    evidence = [still, Evidence("rows_read_meanwhile", float(found.rows), "rows", "0", at), silent.evidence]
    if found.usual:
        evidence.append(Evidence("watermark_usually_still_seconds", found.usual, "seconds", "the usual", at))
    if found.ahead is not None and not found.never and silent.evidence.name != "watermark_behind_rows_seconds":
        evidence.append(Evidence("watermark_behind_rows_seconds", found.ahead, "seconds", "about 0", at))
    return Finding(
        f"{stands} for {duration(found.seconds)} while {counted(found.rows, 'row')} arrived: "
        f"{name}{silent.words} {'keeps it from starting' if found.never else 'stops it'}{grows}",
        Component(silent.kind, silent.name, f"has the lowest watermark{silent.alias}"),
        tuple(evidence),
        (
            first_step("watermark-stalled", context, LOWEST, input=name),
            POLICY,
        ),
        confidence=confidence(found.seconds, most) if silent.kind == "source" else LIKELY,
        began=found.batches[0].started,
        at_most="critical" if found.never or found.usual else "info",  # it may be an input that seldom sends
    )


def _by_clock(view: QueryView, found: StandingClock) -> Finding:
    newest = found.batches[-1]
    at = newest.ended
    arrived = f"while {counted(found.rows, 'row')} arrived in {duration(found.seconds)}"
    evidence = [Evidence("event_time_still_seconds", found.seconds, "seconds", f"< {found.limit:.0f}", at)]
    if found.misread is not None:
        what = f"the newest event time is {found.misread.question} No window closes, {arrived}"
        evidence.append(Evidence("newest_event_time_seconds", found.misread.at, "seconds", "about now", at))
    else:
        why = "only older rows arrive" if found.older else "the clock or the column stands"
        what = f"the newest event time has not moved {arrived}, so no window closes: {why}"
        evidence.append(Evidence("event_time_usually_still_seconds", found.usual, "seconds", "the usual", at))
    evidence.append(Evidence("rows_read_meanwhile", float(found.rows), "rows", "0", at))
    return Finding(
        what,
        Component("source", ", ".join(source.name for source in newest.sources), ", ".join(view.plan.watermarks)),
        tuple(evidence),
        (NEWEST_PRODUCER if found.older and found.misread is None else CLOCK_OR_COLUMN,),
        confidence=CLEAR if found.misread is not None else confidence(found.seconds, found.limit),
        began=found.batches[0].started,
    )


RULE = Rule("watermark-stalled", "warning", check, __doc__, ("freshness-breach", "state-growth"), linger=0.0)
