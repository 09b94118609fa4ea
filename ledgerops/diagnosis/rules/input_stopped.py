"""Input stopped: an input that used to receive rows is silent while others still receive them.

Meaning: the head offsets of a topic rose steadily and have not changed for far longer than ever before, while other
    inputs of this driver still receive rows. So this is neither a quiet period nor a driver that cannot reach the
    broker.
Impact: results that need this input are missing. In a join the watermark of the silent input does not advance: no
    window closes, and the state of the other input grows.
Diagnosis: 1. `ledgerops_arrival_rows_per_second{query="QUERY"}` is 0 for this source and above 0 for others. If it is 0
    for all of them, check the producers' common network or broker first.
    2. Check the log of the producer. If it shows rejected writes, repair its access or the topic; if it shows
    successful writes, continue with 3.
    3. `kafka-topics.sh --list` shows whether the producer now writes to another topic, for example after a rename.
Mitigation: tell the owner of the producer; the query needs no change and reads new rows as soon as they arrive. If the
    input may legitimately pause for so long, no action is needed; for a join, consider a time limit on the state.
Evidence:
    seconds_without_arrival: its `at` - when the heads of the topic last grew (latestOffset of batches, latest of
        records `offsets`), or when the last batch with rows began for a source without heads. `at` is the newest of a
        batch's start, a record `offsets`, an idle record
    longest_pause_seconds: longest time between two samples in which the heads had grown, over the newest 200
"""

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from ledgerops.common.format import duration
from ledgerops.diagnosis.confidence import confidence
from ledgerops.diagnosis.limits import FAR_TIMES
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.model.head_table import MIN_POINTS
from ledgerops.model.history import History
from ledgerops.signals.query_view import QueryView

MIN_SILENCE_SECONDS = 60.0  # producers restart in less
MIN_TIMES_USUAL_PAUSE = 10.0  # silence over the usual pause
MIN_ARRIVALS = 20  # samples in which the topic had grown, so that it counts as flowing: reference data arrive in a few
# over which a flow with short pauses must spread, where no other topic still receives rows
MIN_STEADY_FLOW_SECONDS = 30.0
MAX_STEADY_PAUSE_SECONDS = 5.0  # longest pause of such a flow
MIN_FLOW_SECONDS = 120.0  # over which they must spread: a load of reference data takes less


def check(view: QueryView) -> Iterator[Finding]:
    known = _known_until(view.history, view.now)
    moved = _last_moves(view.history)
    for topic, last in moved.items():
        silent = known - last
        if silent < MIN_SILENCE_SECONDS:
            continue
        moves = _moves(view.history, topic)
        if len(moves) < MIN_ARRIVALS or moves[-1] - moves[0] < MIN_STEADY_FLOW_SECONDS:
            continue
        pauses = [later - earlier for earlier, later in pairwise(moves)]
        longest = max(pauses)
        limit = max(MIN_SILENCE_SECONDS, FAR_TIMES * longest, MIN_TIMES_USUAL_PAUSE * median(pauses))
        going_on = _others(view, topic, (last + known) / 2)
        flowed = (
            moves[-1] - moves[0] >= MIN_FLOW_SECONDS
            if going_on
            else longest <= MAX_STEADY_PAUSE_SECONDS and _is_only_input(view, topic)
        )
        if silent < limit or not flowed:
            continue
        other = f", and {going_on[0]} still receives rows" if going_on else ""
        yield Finding(
            f"no row has arrived in {topic} for {duration(silent)}; its longest pause was {duration(longest)}{other}",
            Component("source", topic),
            (
                Evidence("seconds_without_arrival", silent, "seconds", f"< {limit:.0f}", known),
                Evidence("longest_pause_seconds", longest, "seconds", "the longest so far", last),
            ),
            (first_step("input-stopped", GENERAL, "the query has read all available rows; none arrive", topic=topic),),
            confidence=confidence(silent, limit),
            began=last,
            at_most="critical" if going_on else "info",  # whoever sends may simply have nothing to send
        )


def _is_only_input(view: QueryView, topic: str) -> bool:
    """Whether no other topic is known in the driver: several that stop together are a night, or a system at rest; and
    whether nobody else has seen this one go on."""
    here = _last_moves(view.history)
    return set(here) == {topic} and not any(
        each != topic or at > here[topic] for other in view.others for each, at in _last_moves(other).items()
    )


def _known_until(history: History, now: float) -> float:
    """Heads are known up to the newest batch, the newest answer of the source, or the newest word of being idle."""
    batch = history.last.started if history.last is not None else 0.0
    answered = next((heads.at for heads in reversed(history.heads) if heads.error is None and heads.at <= now), 0.0)
    resting = (history.last_seen or 0.0) if history.idle_since is not None else 0.0
    return min(now, max(batch, answered, resting))


def _last_moves(history: History) -> dict[str, float]:
    """When the heads of each topic that is read had last grown. Two equal heads are the ends of a quiet stretch."""
    read = {topic for source in history.last.sources for topic, _ in source.latest} if history.last else set()
    found: dict[str, float] = {}
    for (topic, _), (heads, times) in history.head_times.items():
        if topic in read and heads:
            at = times[-1]
            if at <= found.get(topic, 0.0):
                continue
            if len(heads) > 1 and heads[-2] == heads[-1]:
                at = max(found.get(topic, 0.0), times[-2])
            found[topic] = at
    return found | {name: moves[-1] for name, moves in _batches_with_rows(history).items() if moves}


def _moves(history: History, topic: str) -> list[float]:
    """The instants at which a topic's heads had grown, as far back as all of its partitions are known in detail."""
    found: set[float] = set()
    since = 0.0
    for (each, _), (heads, times) in history.head_times.items():
        if each == topic:
            heads, newest = heads[-MIN_POINTS:], times[-MIN_POINTS:]  # before that the table is thinned out
            if len(times) > MIN_POINTS:
                since = max(since, newest[0])
            found.update(at for before, head, at in zip(heads, heads[1:], newest[1:], strict=False) if head > before)
    return sorted(at for at in found if at >= since) or _batches_with_rows(history).get(topic, [])


def _batches_with_rows(history: History) -> dict[str, list[float]]:
    """By source that does not report its heads, such as a folder of files: when the batches began that read rows."""
    without = {source.name for source in history.last.sources if not source.latest} if history.last else set()
    found: dict[str, list[float]] = {name: [] for name in without}
    for batch in history.run if without else ():
        for source in batch.sources:
            if source.rows > 0 and source.name in without:
                found[source.name].append(batch.started)
    return found


def _others(view: QueryView, topic: str, since: float) -> list[str]:
    """Other topics, of this query or of another one of the driver, that have moved after `since`."""
    found: set[str] = set()
    for history in (view.history, *view.others):
        if history.ended is None:
            found.update(each for each, at in _last_moves(history).items() if since < at <= view.now)
    return sorted(found - {topic})


RULE = Rule("input-stopped", "warning", check, __doc__, linger=0.0, at_rest=True)
