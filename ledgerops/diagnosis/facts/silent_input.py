"""The input that stops the watermark of a query: a source, an input that `instrument` observes, or a branch."""

from collections.abc import Mapping
from typing import NamedTuple

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.context import folder_of
from ledgerops.diagnosis.facts.stall import MIN_STALLED_BATCHES, MIN_STILL_SECONDS, Stall
from ledgerops.diagnosis.facts.watermark_ahead import MIN_LEAP_SECONDS
from ledgerops.model.finding import Evidence
from ledgerops.model.observed_metrics import OBSERVATION
from ledgerops.model.records import Progress
from ledgerops.model.spark_progress import parse_instant
from ledgerops.signals.query_view import QueryView

UNNAMED = "one input of the query"  # where nothing tells which


class Silent(NamedTuple):
    """The input that stops the watermark."""

    kind: str  # "source", or "input" for an observation
    name: str
    alias: str  # such as ` (observed as accounts)`; empty where the source has one name only
    words: str
    evidence: Evidence


def silent_input(view: QueryView, stall: Stall) -> Silent | None:
    """Which input it is, by the surest sign that there is; None when nothing tells."""
    source, observation = _silent_source(view, stall), _silent_observation(view, stall)
    if source is not None and observation is not None:
        return source._replace(alias=f"{source.alias} (observed as {observation.name})")
    return source or observation or _silent_branch(view, stall)


def _silent_source(view: QueryView, stall: Stall) -> Silent | None:
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
    return Silent("source", name, folder_of(view, name), ", which sent none,", evidence)


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
    limit, at = f"< {MIN_STILL_SECONDS:g}", stall.batches[-1].ended
    evidence = Evidence("silent_input_behind_seconds", behind, "seconds", limit, at)
    return Silent("input", name, "", f", observed {duration(behind)} behind the other,", evidence)


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
    if stall.young or stall.ahead is None or stall.ahead < MIN_LEAP_SECONDS:
        return None
    if len(stall.batches) < 2 * MIN_STALLED_BATCHES:
        return None
    columns = sorted(view.plan.watermarks)
    which = f" (the watermarks are on {', '.join(columns)})" if len(columns) > 1 else ""
    name = "event_time_advance_seconds" if stall.never else "watermark_behind_rows_seconds"
    evidence = Evidence(name, stall.ahead, "seconds", f"< {MIN_LEAP_SECONDS:g}", stall.batches[-1].ended)
    return Silent("input", UNNAMED, "", f"{which}, which passes on no newer rows,", evidence)
