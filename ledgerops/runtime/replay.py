"""Diagnosis of what was recorded: the same records through the same functions as live."""

import math
from collections.abc import Iterable, Iterator, Mapping

from ledgerops.config import FRESHNESS_OBJECTIVE_SECONDS
from ledgerops.diagnosis.engine import AFTERMATH_SECONDS, Diagnoser
from ledgerops.diagnosis.muting import NOTHING, Muted
from ledgerops.errors import UserError, did_you_mean
from ledgerops.model.finding import Verdict
from ledgerops.model.history import MAX_CLOCK_STEP_SECONDS, ClockStep
from ledgerops.model.records import Observation
from ledgerops.model.spark_progress import BadRecord
from ledgerops.runtime.registry import QueryRegistry, QueryState

# kinds after which a verdict may change at once
JUDGED = ("progress", "terminated", "tasks", "files", "batch_running", "stacks")
# what tells more of a batch that was reported at the same instant: the verdict waits for it
COMPLETING = ("tasks", "files")
# how long after the last observation queries are still judged at `every`: later verdicts would see nothing new
MAX_SILENCE_SECONDS = 900.0


class Replay:
    """A registry that takes observations as they were written: one dated long before the one ahead of it tells that
    the machine's clock was set back. `at` is the newest instant seen since, `bad` counts records that cannot be read,
    and `more` says that later ones were left. Only with `counts` it keeps the exporter's running totals. What is
    `muted`, and the objective `freshness` (seconds), are set before the first observation."""

    def __init__(self, counts: bool = False, trigger_interval: float | None = None, muted: Muted = NOTHING) -> None:
        self.muted = muted
        self.freshness = FRESHNESS_OBJECTIVE_SECONDS
        self.registry = QueryRegistry(
            lambda: Diagnoser(freshness=self.freshness, muted=self.muted),
            counts=counts,
            trigger_interval=trigger_interval,
            forgets=False,
        )
        self.at: float | None = None
        self._told = -math.inf  # when the newest observation was written down
        self.bad = 0
        self.more = False

    def take(self, seen: Observation) -> QueryState | None:
        """Adds one observation without a verdict, or counts it as bad. Returns the query that it changed."""
        if seen.at < self._told - MAX_CLOCK_STEP_SECONDS:
            self.registry.forget_times(ClockStep(seen.at, seen.at - self._told))
            self.at = None
        self._told = seen.at
        self.at = seen.at if self.at is None else max(self.at, seen.at)
        try:
            return self.registry.ingest(seen)
        except BadRecord:
            self.bad += 1
            return None

    def named(self, query: str | None, place: str, when: str = "") -> Mapping[str, QueryState]:
        """The queries, or only the one that is asked for. Raises UserError when there is none."""
        queries = self.registry.queries
        if not queries:
            raise UserError(f"no streaming query in {place}{when or ': none has begun, or the job has none'}")
        if query is not None and query not in queries:
            every = f"the queries are {', '.join(sorted(queries))}"
            raise UserError(f"no query {query!r} in {place}; {did_you_mean(query, queries, every)}")
        return {name: state for name, state in queries.items() if query in (None, name)}

    def verdicts(
        self, observations: Iterable[Observation], at: float | None = None, every: float | None = None,
        brief: bool = True,
    ) -> Iterator[Verdict]:  # fmt: skip
        """The verdict on the query that changed after each batch, up to the instant `at` (or to the end).

        A `brief` one has findings, status and health only, which takes half the time.

        With `every`, a query that was not judged for so many seconds is judged again, at a multiple of them, as by the
        observer of a running query: silence is a sign, too. Only what was observed before that moment is known then.
        """
        changed: QueryState | None = None
        for seen in observations:
            self.more = at is not None and seen.at > at
            if self.more:
                break
            if changed is not None and self.at is not None and not self._completes(seen, changed):
                yield self.registry.judge(changed, self.at, brief)
                changed = None
            if every is not None:
                yield from self._between(seen.at, every, brief)
            state = self.take(seen)
            if state is not None and seen.kind in JUDGED:
                changed = state
        if changed is not None and self.at is not None:
            yield self.registry.judge(changed, self.at, brief)
        if at is not None and every is not None:
            yield from self._between(at, every, brief)

    def _completes(self, seen: Observation, changed: QueryState) -> bool:
        return seen.kind in COMPLETING and seen.at == self.at and seen.query == changed.history.query

    def _between(self, until: float, every: float, brief: bool) -> Iterator[Verdict]:
        if self.at is None or until <= self.at:
            return
        first = math.floor(self.at / every) + 1
        for number in range(first, math.ceil(min(until, self.at + MAX_SILENCE_SECONDS) / every)):
            for state in self.registry.queries.values():
                over = state.history.ended
                if over is not None and state.verdict and state.verdict.at > over.at + AFTERMATH_SECONDS:
                    continue  # nothing changes any more
                if state.verdict is None or state.verdict.at <= (number - 1) * every:
                    yield self.registry.judge(state, number * every, brief)


def replay(
    observations: Iterable[Observation],
    at: float | None = None,
    freshness: float = FRESHNESS_OBJECTIVE_SECONDS,
    muted: Muted = NOTHING,
    counts: bool = False,
) -> Replay:
    """Goes through the observations, with a brief verdict at each batch, up to the instant `at` (or to the end). The
    last verdict on each query is whole, and as of `at`, or of the last observation. `counts` as of `Replay`."""
    result = Replay(counts, muted=muted)
    result.freshness = freshness
    for _ in result.verdicts(observations, at):
        pass
    if result.at is not None:
        result.at = result.at if at is None else at
        for state in result.registry.queries.values():
            result.registry.judge(state, result.at)
    return result


def verdicts(observations: Iterable[Observation], every: float | None = None) -> Iterator[Verdict]:
    """All verdicts of a recording, whole, oldest first: see `Replay.verdicts`."""
    return Replay().verdicts(observations, every=every, brief=False)
