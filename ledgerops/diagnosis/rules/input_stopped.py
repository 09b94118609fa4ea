"""Input stopped: an input that used to receive rows is silent while others still receive them.

Meaning: the head offsets of a topic rose steadily and have not changed for far longer than ever before, while other
    inputs of this driver still receive rows. So this is neither a quiet period nor a driver that cannot reach the
    broker.
Impact: results that need this input are missing. In a join the watermark of the silent input does not advance: no
    window closes, and the state of the other input grows.
Diagnosis: 1. `ledgerops_arrival_rows_per_second{app="APP",query="QUERY"}` is 0 for this source and above 0 for others.
    If it is 0 for all of them, check the producers' common network or broker first.
    2. Check the log of the producer. If it shows rejected writes, repair its access or the topic; if it shows
    successful writes, continue with 3.
    3. `kafka-topics.sh --bootstrap-server SERVERS --list` shows whether the producer now writes to another topic, for
    example after a rename.
Mitigation: tell the owner of the producer; the query needs no change and reads new rows as soon as they arrive. If the
    input may legitimately pause for so long, no action is needed; for a join, consider a time limit on the state.
Evidence:
    seconds_without_arrival: its `at` - when the heads of the topic last grew (latestOffset of batches, latest of
        records `offsets`), or when the last batch with rows began for a source without heads. `at` is the newest of a
        batch's start, a record `offsets`, an idle record
    longest_pause_seconds: longest time between two samples in which the heads had grown; without heads from the end of
        a batch with rows to the start of the next
"""

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.arrivals import arrivals, is_only_input, known_until, last_moves, longest_quiet, others
from ledgerops.diagnosis.facts.context import folder_of
from ledgerops.diagnosis.limits import FAR_TIMES, VERY_FAR_TIMES
from ledgerops.diagnosis.rule import Rule, confidence
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.signals.query_view import QueryView

MIN_SILENCE_SECONDS = 60.0  # producers restart in less
MIN_ARRIVALS = 20  # samples in which the topic had grown, so that it counts as flowing: reference data arrive in a few
MIN_FLOW_SECONDS = 2 * MIN_SILENCE_SECONDS  # over which they must spread: a load of reference data takes less
# over which a flow with short pauses must spread, where no other topic still receives rows
MIN_STEADY_FLOW_SECONDS = MIN_SILENCE_SECONDS / 2
MAX_STEADY_PAUSE_SECONDS = 5.0  # longest pause of such a flow


def check(view: QueryView) -> Iterator[Finding]:
    known = known_until(view.history, view.now)
    moved = last_moves(view.history)
    for topic, last in moved.items():
        silent = known - last
        if silent < MIN_SILENCE_SECONDS:
            continue
        moves = arrivals(view.history, topic)
        flow = moves[-1].at - moves[0].at if moves else 0.0
        if len(moves) < MIN_ARRIVALS or flow < MIN_STEADY_FLOW_SECONDS:
            continue
        pauses = [max(0.0, later.at - earlier.looked) for earlier, later in pairwise(moves)]
        longest = max(pauses)
        limit = max(MIN_SILENCE_SECONDS, FAR_TIMES * longest, VERY_FAR_TIMES * median(pauses))
        going_on = others(view, topic, (last + known) / 2)
        alone = longest <= MAX_STEADY_PAUSE_SECONDS and is_only_input(view, topic)
        flowed = flow >= MIN_FLOW_SECONDS if going_on else alone
        if silent < limit or not flowed:
            continue
        longest = max(longest, longest_quiet(view.history, topic, last))
        limit = max(limit, FAR_TIMES * longest)
        if silent < limit:
            continue  # so long ago that it is no part of the newest arrivals: the night before
        folder = folder_of(view, topic)
        name, context = f"{topic}{folder}", "folder" if folder else GENERAL
        other = f", and {going_on[0]} still receives rows" if going_on else ""
        yield Finding(
            f"no row has arrived in {name} for {duration(silent)}; its longest pause was {duration(longest)}{other}",
            Component("source", topic),
            (
                Evidence("seconds_without_arrival", silent, "seconds", f"< {limit:.0f}", known),
                Evidence("longest_pause_seconds", longest, "seconds", "the longest so far", last),
            ),
            (first_step("input-stopped", context, "the query has read all available rows; none arrive", topic=name),),
            confidence=confidence(silent, limit),
            began=last,
            at_most="critical" if going_on else "info",  # whoever sends may simply have nothing to send
        )


RULE = Rule("input-stopped", "warning", check, __doc__, linger=0.0, at_rest=True)
