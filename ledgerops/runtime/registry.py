"""All queries of one driver: observations in, histories and verdicts out. The same code serves live and offline."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics import RunningTotals
from ledgerops.model.finding import Verdict
from ledgerops.model.history import ClockStep, History
from ledgerops.model.observations import decode
from ledgerops.model.records import Host, Observation, Observer
from ledgerops.model.spark_progress import BadRecord, parse_instant, parse_progress, query_name
from ledgerops.runtime.runs import Runs
from ledgerops.signals.query_view import QueryView

MAX_HOST_SAMPLES = 60  # at a sample every 10 s, ten minutes
MAX_OBSERVER_SAMPLES = 60  # at a sample every 5 s, five minutes
MAX_REPLACED_RUNS = 3  # of one name, kept because they were replaced before their end was reported
MAX_RUNS = 2_000  # whose queries are known; ten for each query that may be kept
END_MARKS = ("unwatched", "lost", "with_application")  # of a terminated record, for what Spark does not report
MAX_ENDED_QUERIES = 200  # beyond this the queries that ended first are forgotten
Sample = TypeVar("Sample", Host, Observer)


class QueryState:
    """Everything held about one query name."""

    def __init__(self, query: str, judge: Diagnoser) -> None:
        self.history = History(query)
        self.totals = RunningTotals()
        self.judge = judge
        self.verdict: Verdict | None = None
        self.replaced: list[History] = []  # as they were when a run that had not ended was replaced, oldest first


class QueryRegistry:
    """Not thread-safe: one worker owns it. `judge` makes the diagnoser of a new query. Without `counts` no running
    totals are kept, which only the exporter needs. One that `forgets` keeps MAX_ENDED_QUERIES that have ended."""

    def __init__(
        self, judge: Callable[[], Diagnoser], counts: bool = True, trigger_interval: float | None = None,
        forgets: bool = True,
    ) -> None:  # fmt: skip
        self._judge, self._counts, self._forgets = judge, counts, forgets
        self._trigger_interval = trigger_interval
        self._query_names: dict[str, str] = {}  # run id -> query: idle and terminated events carry no name
        self._given_names: dict[str, str] = {}  # run id -> the name given to it, because Spark's belongs to another run
        self._second_names: dict[str, str] = {}  # query id -> the same, for its later runs
        self.queries: dict[str, QueryState] = {}
        self.hosts: deque[Host] = deque(maxlen=MAX_HOST_SAMPLES)
        self.observer: deque[Observer] = deque(maxlen=MAX_OBSERVER_SAMPLES)
        self.runs = Runs()  # the active ones; other threads may read it

    def ingest(self, seen: Observation, origin: Any = None) -> QueryState | None:
        """Adds one observation. Returns the query that it changed, None for one of the whole driver. `origin` is the
        session that it came from: collectors ask the sessions of the active runs. Raises BadRecord when the data do not
        fit their kind; nothing is changed then."""
        state = self._ingest(seen)
        if state is not None:
            self.runs.note(seen, state.history, origin)
        return state

    def _ingest(self, seen: Observation) -> QueryState | None:
        if seen.kind == "host":
            _add(self.hosts, decode(seen))
            return None
        if seen.kind == "observer":
            told: Observer = decode(seen)
            if self.observer and told.at > self.observer[-1].at and _is_of_another_driver(told, self.observer[-1]):
                self._end_unrecorded(self.observer[-1].at)
            _add(self.observer, told)
            return None
        if seen.kind == "progress":
            progress = parse_progress(seen.data)
            state = self._state(progress.query, progress.run_id, progress.query_id)
            self._separate(state, progress.run_id, progress.started, begins=True)
            if state.history.add(progress) and self._counts:
                state.totals.add(progress)
            state.history.note_told(seen.at, progress.ended)
            return state
        run_id = seen.data.get("runId") or seen.data.get("run_id")
        if not isinstance(run_id, str):
            raise BadRecord(f"no run id in {seen.kind}")
        record = decode(seen)
        state = self._state(self._name(seen, run_id), run_id, seen.data.get("id"))
        at = parse_instant(seen.data.get("timestamp")) or seen.at
        if seen.kind in ("started", "idle"):
            self._separate(state, run_id, at, begins=seen.kind == "started")
        if seen.kind == "terminated":
            state.replaced = [each for each in state.replaced if each.run_id != run_id]
        _apply(state.history, seen, record, run_id, at)
        if seen.kind == "tables":
            commits = state.history.add_tables(record)
            if self._counts:
                state.totals.add_commits(commits)
        return state

    def _end_unrecorded(self, at: float) -> None:
        """Another driver writes the recording, whose counters began anew: nothing goes on of the one before, which told
        of itself last at this instant. A run of which something is told all the same is revived."""
        for state in self.queries.values():
            history = state.history
            if history.run_id is not None and history.ended is None:
                last = max(at, history.last_seen or 0.0)
                history.end(last, history.run_id, None, None, unwatched=True, unrecorded=True)

    def states(self) -> Mapping[str, QueryState]:
        """All queries by name."""
        return self.queries

    def view(self, state: QueryState, now: float) -> QueryView:
        """The signals of one query at an instant (seconds since the epoch)."""
        others = [other.history for other in self.queries.values() if other is not state]
        return QueryView(
            state.history, now, self.hosts, others, observer=self.observer, trigger_interval=self._trigger_interval,
        )  # fmt: skip

    def judge(self, state: QueryState, now: float, brief: bool = False) -> Verdict:
        """A fresh verdict on one query, which is also kept."""
        state.verdict = state.judge(self.view(state, now), brief)
        return state.verdict

    def forget_times(self, step: ClockStep) -> None:
        """After the machine's clock was set: back, records dated later would hide all that happens until then; forward,
        every query would have been silent for long. The running totals stay."""
        self.hosts.clear()
        self.observer.clear()
        for state in self.queries.values():
            state.history, state.replaced = state.history.without_times(step), []
            state.judge, state.verdict = self._judge(), None
        self.runs.move(step)

    def _name(self, seen: Observation, run_id: str) -> str:
        name = seen.data.get("name")
        if isinstance(name, str) and name:
            return name
        return seen.query or self._query_names.get(run_id) or query_name(None, str(seen.data.get("id") or run_id))

    def _state(self, query: str, run_id: str, query_id: object = None) -> QueryState:
        if isinstance(query_id, str) and query_id in self._second_names:
            self._given_names[run_id] = self._second_names[query_id]
        query = self._given_names.get(run_id, query)
        self._remember(run_id, query)
        state = self.queries.get(query)
        if state is None:
            if self._forgets:
                self._forget_ended()
            state = self.queries[query] = QueryState(query, self._judge())
        _revive(state.history, run_id)
        return state

    def _remember(self, run_id: str, query: str) -> None:
        """Keeps the query of a run, and forgets the oldest runs: nothing more is reported of them."""
        self._query_names.pop(run_id, None)
        self._query_names[run_id] = query
        if len(self._query_names) > MAX_RUNS:
            oldest = next(iter(self._query_names))
            del self._query_names[oldest]
            self._given_names.pop(oldest, None)

    def _separate(self, state: QueryState, run_id: str, at: float, begins: bool) -> None:
        """Two sessions may each run a query of the same name: Spark requires unique names within a session only. A new
        run counts as a restart until the earlier one, whose end was not reported, shows activity after it began."""
        history = state.history
        if history.run_id in (None, run_id) or history.is_late(run_id, at):
            return
        if any(each.run_id == run_id for each in state.replaced):
            while state.history.run_id != run_id:
                self._rename_newer(state)
        elif begins and history.ended is None:
            state.replaced = [*state.replaced, history.copy()][-MAX_REPLACED_RUNS:]

    def _rename_newer(self, state: QueryState) -> None:
        """Gives the newer run a name of its own, and the history back to the run before it."""
        newer = state.history
        assert newer.run_id is not None and newer.query_id is not None
        *state.replaced, state.history = state.replaced
        state.history.restarts, state.history.failures = newer.restarts, newer.failures  # counters must not fall
        own_id = newer.query_id != state.history.query_id  # a query with its checkpoint keeps it
        self._given_names[newer.run_id] = f"{newer.query}-{(newer.query_id if own_id else newer.run_id)[:8]}"
        if own_id:
            self._second_names[newer.query_id] = self._given_names[newer.run_id]
        second = self._state(newer.query, newer.run_id)
        second.history.start(newer.started_at or 0.0, newer.query_id, newer.run_id)
        for batch in newer.run:
            if second.history.add(batch) and self._counts:
                second.totals.add(batch)
        if newer.plan is not None and newer.plan.run_id == newer.run_id:
            second.history.plan = newer.plan
        if newer.ended is not None:
            second.history.end(**asdict(newer.ended))

    def _forget_ended(self) -> None:
        ended = sorted((over.at, name) for name, state in self.queries.items() if (over := state.history.ended))
        for _, name in ended[: max(0, len(ended) - MAX_ENDED_QUERIES + 1)]:
            del self.queries[name]
            self.runs.forget(name)
            self._query_names = {run: query for run, query in self._query_names.items() if query != name}
            self._given_names = {run: query for run, query in self._given_names.items() if query != name}
            self._second_names = {each: query for each, query in self._second_names.items() if query != name}


def _is_of_another_driver(told: Observer, before: Observer) -> bool:
    """Whether its counters began anew."""
    return told.events < before.events or told.worker_seconds < before.worker_seconds


def _revive(history: History, run_id: str) -> None:
    """Takes an unrecorded end back of which more is told: of two drivers that ran side by side both runs go on."""
    if history.ended is not None and history.ended.unrecorded and history.run_id == run_id:
        history.ends.remove(history.ended)
        history.ended = None


def _apply(history: History, seen: Observation, record: Any, run_id: str, at: float) -> None:
    """Adds an observation of a run to its history; `record` is what `decode` made of it."""
    match seen.kind:
        case "started":
            history.start(at, str(seen.data.get("id") or run_id), run_id)
        case "idle":
            history.note_told(seen.at, at)
            if not history.is_late(run_id, at):
                history.idle(at)
        case "terminated":
            exception, kind = _text(seen.data, "exception"), _text(seen.data, "errorClassOnException")
            marks = {mark: seen.data.get(mark) is True for mark in END_MARKS}
            error = _text(seen.data, "application_error")
            history.end(at, run_id, exception, kind, application_error=error, **marks)
        case "plan":
            history.plan = record
        case "tasks":
            history.tasks.append(record)
        case "files":
            history.files.append(record)
        case "driver_code":
            history.driver_code = record
        case "stacks":
            history.stacks = (*history.stacks[-1:], record)
        case "offsets":
            history.add_heads(record)
        case "batch_running":
            history.set_running(record)


def _text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) and value else None


def _add(samples: deque[Sample], sample: Sample) -> None:
    """Keeps readings in order: one that is not newer than the newest is dropped."""
    if not samples or sample.at > samples[-1].at:
        samples.append(sample)
