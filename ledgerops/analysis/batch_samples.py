"""The batches of each query in a recording, as plain figures that can be plotted and compared."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ledgerops.model.records import Observation, Progress
from ledgerops.runtime.replay import Replay
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rates import arrival_between

WARM_UP_SECONDS = 30.0  # of a run that are left out: the JVM compiles, and a backlog may be processed


class BatchSample(NamedTuple):
    """One batch. Seconds, rows, bytes, rows a second; None where Spark does not say."""

    started: float
    ended: float
    rows: int
    seconds: float
    phases: Mapping[str, float]
    arrival: float | None = None  # by the growth of the heads since the batch before
    read: float | None = None  # rows over the time since the batch before began
    processed: float | None = None  # rows over the batch duration
    lag: float | None = None  # when the batch ended
    latency: float | None = None  # from the mean event time of its rows to its end
    state_bytes: float | None = None
    commit_seconds: float | None = None  # of the state, summed over tasks


Samples = dict[str, list[BatchSample]]  # of each query, oldest first


def samples(observations: Iterable[Observation]) -> Samples:
    """Of all queries; without the start of each run. Records that cannot be read are skipped."""
    replay, found = Replay(), Samples()
    before: dict[str, Progress] = {}
    for seen in observations:
        state = replay.take(seen)
        if state is None or seen.kind != "progress" or (last := state.history.last) is None:
            continue
        query = state.history.query
        if before.get(query) is last:
            continue  # a batch that was known
        made = batch_sample(before.get(query), last, replay.registry.view(state, last.ended))
        before[query] = last
        if last.started >= (state.history.started_at or 0.0) + WARM_UP_SECONDS:
            found.setdefault(query, []).append(made)
    return found


def split(found: Samples, at: float) -> tuple[Samples, Samples]:
    """What ended before an instant and what began after it; the batch in between belongs to neither."""
    return (
        {query: [each for each in samples if each.ended <= at] for query, samples in found.items()},
        {query: [each for each in samples if each.started >= at] for query, samples in found.items()},
    )


def batch_sample(before: Progress | None, last: Progress, view: QueryView) -> BatchSample:
    """The figures of the newest batch of a view; `before` is the batch before it, of whichever run."""
    gap = last.started - before.started if before is not None and before.run_id == last.run_id else 0.0
    by_source = arrival_between(before, last, view.rates.rows_per_offset) if before is not None and gap > 0 else {}
    operators = last.operators
    return BatchSample(
        started=last.started, ended=last.ended, rows=last.rows, seconds=last.duration, phases=last.phases,
        arrival=sum(by_source.values()) if by_source else None, read=last.rows / gap if gap > 0 else None,
        processed=last.rows / last.duration if last.duration > 0 else None, lag=view.lag.seconds,
        latency=None if last.event_time_avg is None else max(0.0, last.ended - last.event_time_avg),
        state_bytes=float(sum(each.memory_bytes for each in operators)) if operators else None,
        commit_seconds=sum(each.commit_seconds for each in operators) if operators else None,
    )  # fmt: skip
