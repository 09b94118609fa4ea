"""The failures of a query: how many, the newest, and whether they follow each other."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf

from ledgerops.diagnosis.facts.known_failures import SCHEMA_EVOLVED, explain
from ledgerops.diagnosis.limits import FAR_TIMES
from ledgerops.model.finding import Evidence
from ledgerops.model.history import Ended, History
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_FAILURES = 3  # as in the alert of this name; a single failure is reported by query-failed
LOOP_SECONDS = 900.0  # as in the alert
RESTARTED_SECONDS = 60.0  # after a failure; a query that is restarted again and again fails within them

MIN_LEFT_SHARE = 0.1  # of the memory: what grows fast takes less than that before the next sample


def failures(view: QueryView, at: float) -> Evidence:
    """How often the query has failed, the failure at `at` included."""
    count = max(1, sum(view.history.failures.values()))
    return Evidence("ledgerops_query_failures_total", float(count), "count", "0", at)


def newest_failure(view: QueryView) -> Ended | None:
    """The end of the run, or that of the one before while this one has done nothing yet; None if it did not fail."""
    history = view.history
    ended = history.ended
    if ended is None and history.ends and view.now - history.ends[-1].at <= RESTARTED_SECONDS and not view.batches:
        ended = history.ends[-1]
    return ended if ended is not None and ended.exception is not None else None


def application_error(view: QueryView) -> str | None:
    """What the application ended with, and the query with it; None where that is the failure of another query."""
    ended = view.history.ended
    if ended is None or any(ended.stopped_by(other.ended, view.others) for other in view.others):
        return None
    return ended.application_error


def same_checkpoint(view: QueryView) -> Sequence[History]:
    """The others that ran with the same checkpoint at the same time: a query that was renamed goes on with it."""

    def span(history: History) -> tuple[float, float]:
        return history.started_at or 0.0, inf if history.ended is None else history.ended.at

    began, end = span(view.history)
    same = [each for each in view.others if each.query_id is not None and each.query_id == view.history.query_id]
    return [each for each in same if began < span(each)[1] and span(each)[0] < end]


def replaced_by(view: QueryView) -> History | None:
    """The query with whose start Spark stopped this one, as it runs one with a checkpoint: it says nothing of it."""
    ended, began = view.history.ended, view.history.started_at or 0.0
    if ended is None or ended.exception is not None or ended.lost:
        return None
    return next((other for other in same_checkpoint(view) if (other.started_at or 0.0) > began), None)


def memory_left(view: QueryView) -> Sequence[Evidence]:
    """What the newest sample says is left of the driver's memory; none without a sample."""
    host = view.hosts[-1] if view.hosts else None
    if host is None or host.memory_available_bytes is None or host.memory_total_bytes is None:
        return []
    enough = f">= {MIN_LEFT_SHARE * host.memory_total_bytes:.0f}"
    return [Evidence("available_bytes", host.memory_available_bytes, "bytes", enough, host.at)]


@once
def crash_loop(view: QueryView) -> tuple[Sequence[Ended], Sequence[int | None]] | None:
    """The failures of the last 15 minutes, oldest first, until a run has passed the point where they failed, and the
    batch in which each happened, where one was done before it: else only the checkpoint knows. A run that finished no
    batch and of whose end nothing was recorded, as of a driver that is killed, has failed. A query that ends to go on
    with a changed schema is in no loop."""
    if len(view.history.ends) < MIN_FAILURES or view.history.restarts < MIN_FAILURES - 1:
        return None
    worked = {batch.run_id for batch in view.history.batches}
    failed = [
        end for end in view.history.ends if end.exception is not None or (end.unrecorded and end.run_id not in worked)
    ]
    failed = [end for end in failed if (known := explain(end.exception or "")) is None or known.name != SCHEMA_EVOLVED]
    if len(failed) < MIN_FAILURES:
        return None
    failed = [end for end in failed if end.at >= max(failed[-1].at, view.now) - LOOP_SECONDS]
    if len(failed) < MIN_FAILURES:
        return None
    # the batch after the newest that was done before the end; ids go on over restarts, but begin anew with another
    # checkpoint
    batches = [
        next((batch.batch_id + 1 for batch in reversed(view.history.batches) if batch.ended <= end.at), None)
        for end in failed
    ]
    if view.history.ended is None:
        last = view.last
        same = batches.count(batches[-1]) > 1
        begun = batches[-1] if batches[-1] is not None or last is None else view.batches[0].batch_id
        if same and last is not None and begun is not None and last.batch_id >= begun + RECENT_BATCHES:
            return None
        longest = max(later.at - earlier.at for earlier, later in pairwise(failed))
        if view.now - failed[-1].at > max(RESTARTED_SECONDS, FAR_TIMES * longest):
            return None
    elif view.history.ended.exception is None:
        return None  # somebody stopped it
    return failed, batches
