"""The batches of each query in a recording, as plain figures that can be compared."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ledgerops.model.records import Observation, Progress
from ledgerops.runtime.replay import Replay
from ledgerops.signals.query_view import QueryView

WARM_UP_SECONDS = 30.0  # of a run that are left out: the JVM compiles, and a backlog may be processed


class Sample(NamedTuple):
    """One batch: seconds, rows, bytes; None where Spark does not say."""

    started: float
    ended: float
    rows: int
    seconds: float
    phases: Mapping[str, float]
    rows_per_second: float | None  # read since the batch before began
    lag: float | None  # when the batch ended
    latency: float | None  # from the mean event time of its rows to its end
    state_bytes: float | None
    commit_seconds: float | None  # of the state, summed over tasks


def samples(observations: Iterable[Observation]) -> dict[str, list[Sample]]:
    """By query, oldest first; without the start of each run. Records that cannot be read are skipped."""
    replay, found = Replay(), dict[str, list[Sample]]()
    before: dict[str, Progress] = {}
    for seen in observations:
        state = replay.take(seen)
        if state is None or seen.kind != "progress" or (last := state.history.last) is None:
            continue
        query = state.history.query
        if before.get(query) is last:
            continue  # a batch that was known
        made = _sample(before.get(query), last, replay.registry.view(state, last.ended))
        before[query] = last
        if last.started >= (state.history.started_at or 0.0) + WARM_UP_SECONDS:
            found.setdefault(query, []).append(made)
    return found


def split(found: Mapping[str, list[Sample]], at: float) -> tuple[dict[str, list[Sample]], dict[str, list[Sample]]]:
    """What ended before an instant and what began after it; the batch in between belongs to neither."""
    return (
        {query: [each for each in samples if each.ended <= at] for query, samples in found.items()},
        {query: [each for each in samples if each.started >= at] for query, samples in found.items()},
    )


def _sample(before: Progress | None, last: Progress, view: QueryView) -> Sample:
    gap = last.started - before.started if before is not None and before.run_id == last.run_id else 0.0
    operators = last.operators
    return Sample(
        started=last.started, ended=last.ended, rows=last.rows, seconds=last.duration, phases=last.phases,
        rows_per_second=last.rows / gap if gap > 0 else None, lag=view.lag.seconds,
        latency=None if last.event_time_avg is None else max(0.0, last.ended - last.event_time_avg),
        state_bytes=float(sum(each.memory_bytes for each in operators)) if operators else None,
        commit_seconds=sum(each.commit_seconds for each in operators) if operators else None,
    )  # fmt: skip
