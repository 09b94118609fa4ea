"""What Spark sends no event for: a batch that does not end, a query that vanished, one that ran before the attach.

It asks little: while batches come in time, only for the list of active queries every LIST_SECONDS. A query is asked for
its status once it has been silent for longer than normal.
"""

import math
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

import orjson

from ledgerops.agent.queue import EventQueue
from ledgerops.agent.sessions import ActiveQuery, Session
from ledgerops.model.records import LONG_RUNNING
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime.runs import Run, Runs

MIN_SILENCE_SECONDS = 3.0  # normal for any query
IDLE_SILENCE_SECONDS = 12.0  # an idle query reports every 10 s (Spark's noDataProgressEventInterval)
MIN_SILENT_INTERVALS = 2  # trigger intervals, normal for any query
REPEAT_SECONDS = 5.0  # between two reports of the same batch
LIST_SECONDS = 10.0  # between two questions for the active queries
GONE_SECONDS = 10.0  # how long a run must be missing: its end event may be on the way, or its session just attached
UNREACHABLE_SECONDS = 20.0  # without an answer from a session, after which its runs count as lost
WORKING = "Processing new data"


class Watchdog:
    """Intervals are taken by `steady`: setting the clock neither hides a batch that does not end nor makes one up."""

    def __init__(
        self, queue: EventQueue, runs: Runs, sessions: Callable[[], Iterable[Session]],
        clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._queue, self._runs, self._sessions = queue, runs, sessions
        self._clock, self._steady = clock, steady
        self._silence = Silence(clock)
        self._listed: dict[str, float] = {}  # session -> when
        self._missing: dict[str, float] = {}  # run id -> since when; infinity once its end was reported
        self._reported: dict[str, float] = {}
        self._unreachable: dict[str, float] = {}  # session -> since when it does not say what runs

    def collect(self) -> None:
        """Checks all sessions and runs, and queues what Spark did not report. Raises the last error at the end."""
        now = self._steady()
        sessions = list(self._sessions())
        errors = [*self._check_sessions(sessions, now), *self._check_runs(sessions, now)]
        self._forget_ended(sessions)
        if errors:
            raise errors[-1]

    def _check_sessions(self, sessions: Sequence[Session], now: float) -> Iterator[Exception]:
        """Compares the active queries of each session with the known runs. Yields what Spark raises."""
        for session in sessions:
            if now - self._listed.get(session.key, -math.inf) < LIST_SECONDS:
                continue
            self._listed[session.key] = now
            try:
                self._list(session, now)
                self._unreachable.pop(session.key, None)
            except Exception as error:  # the other sessions are checked all the same
                yield error
                if now - self._unreachable.setdefault(session.key, now) >= UNREACHABLE_SECONDS:
                    self._queue_lost(session)

    def _check_runs(self, sessions: Sequence[Session], now: float) -> Iterator[Exception]:
        """Asks about the runs that have been silent for too long. Yields what Spark raises."""
        for run in self._runs.runs():
            if run.session not in sessions:  # detached; a query runs as long as its session does
                self._note_missing(run, now, unwatched=run.session.alive)
                continue
            silence, reported = self._silence.seconds(run, now), self._reported.get(run.run_id, -math.inf)
            pause = LIST_SECONDS if _always_runs(run) else REPEAT_SECONDS
            if silence > quiet_seconds(run) and now - reported >= pause:
                try:
                    self._ask(run, now, silence)
                except Exception as error:  # the handle's JVM side may be gone; the other runs are asked all the same
                    yield error

    def _forget_ended(self, sessions: Sequence[Session]) -> None:
        active = {run.run_id for run in self._runs.runs()}
        self._reported = {run_id: at for run_id, at in self._reported.items() if run_id in active}
        self._missing = {run_id: at for run_id, at in self._missing.items() if run_id in active}
        self._silence.keep(active)
        self._listed = {each.key: self._listed.get(each.key, -math.inf) for each in sessions}
        self._unreachable = {key: since for key, since in self._unreachable.items() if key in self._listed}

    def _list(self, session: Session, now: float) -> None:
        active: dict[str, ActiveQuery] = {}
        if session.alive:
            session.listen_again()
            active = {query.run_id: query for query in session.active()}
        for run in self._runs.runs():
            if run.run_id in active:
                run.session, run.handle = session, active[run.run_id].handle  # it may have been attached anew
                self._missing.pop(run.run_id, None)
            elif run.session is session:
                self._note_missing(run, now)
        for query in active.values():
            if not self._runs.knows(query.run_id):  # it ran before the attach: its start event was not sent to us
                at = format_instant(self._clock())
                data = {"id": query.query_id, "runId": query.run_id, "name": query.name, "timestamp": at}
                self._queue.put("started", orjson.dumps(data), query.name, session)

    def _note_missing(self, run: Run, now: float, unwatched: bool = False) -> None:
        if now - self._missing.setdefault(run.run_id, now) >= GONE_SECONDS:
            self._find_end(run, unwatched)

    def _queue_lost(self, session: Session) -> None:
        """For the runs of a session whose server or JVM has not answered for long; any answer brings them back."""
        for run in self._runs.runs():
            if run.session is session and self._missing.get(run.run_id) != math.inf:
                self._queue_end(run, lost=True)

    def _find_end(self, run: Run, unwatched: bool) -> None:
        """Queues the end of a run that is gone without an event or continues `unwatched`; again if the queue was full.
        It is `lost` when its session should be there and nobody can say how it ended; where the application stopped the
        session, or Spark knows of no exception, it has stopped."""
        exception = error_class = None
        lost = run.session.alive and not unwatched
        if run.handle is not None and lost:
            try:
                problem = run.session.call(run.handle.exception)
                lost = False
            except Exception:  # the query's JVM side is gone, too
                problem = None
            if problem is not None:
                exception = str(problem).strip() or "unknown"
                error_class = getattr(problem, "getCondition", getattr(problem, "getErrorClass", lambda: None))()
        self._queue_end(run, exception, error_class, unwatched, lost)

    def _queue_end(
        self, run: Run, exception: str | None = None, error_class: str | None = None, unwatched: bool = False,
        lost: bool = False,
    ) -> None:  # fmt: skip
        """Puts the end of a run on the queue, and releases what is held for it unless it may go on."""
        data: dict[str, object] = {"id": run.query_id, "runId": run.run_id}
        data |= {"exception": exception, "errorClassOnException": error_class}
        data |= {"unwatched": True} if unwatched else {"lost": True} if lost else {}
        if self._queue.put("terminated", orjson.dumps(data), run.query, run.session):
            self._missing[run.run_id] = math.inf
        if not unwatched and not lost:
            run.session.gone(run.run_id)

    def _ask(self, run: Run, now: float, silence: float) -> None:
        if run.handle is None or not run.session.alive:
            self._listed.pop(run.session.key, None)  # the next check fetches the handle
            return
        status = run.session.call(lambda: run.handle.status)
        message = str(status.get("message", ""))
        if not status.get("isTriggerActive") or (message != WORKING and silence < IDLE_SILENCE_SECONDS):
            return  # looking for new data also counts as an active trigger, and normally takes no time
        self._reported[run.run_id] = now
        work = run.session.work(run.run_id) if message == WORKING else {}
        data = {"run_id": run.run_id, "since": trigger_began(run), "message": message, **work}
        self._queue.put("batch_running", orjson.dumps(data), run.query, run.session)


class Silence:
    """How long runs give no sign of life, by a clock that nobody sets: `now` is of that one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[float, float]] = {}  # run id -> its last sign of life, and when, by the other clock

    def seconds(self, run: Run, now: float) -> float:
        """Seconds since the run's last sign of life."""
        seen = self._seen.get(run.run_id)
        if seen is None or seen[0] != run.last_seen:
            seen = self._seen[run.run_id] = run.last_seen, now - max(0.0, self._clock() - run.last_seen)
        return now - seen[1]

    def keep(self, active: Container[str]) -> None:
        """Forgets all runs but these."""
        self._seen = {run_id: seen for run_id, seen in self._seen.items() if run_id in active}


def quiet_seconds(run: Run) -> float:
    """How long the run may be silent before it is polled: a batch that fills its interval by design is looked at."""
    if _always_runs(run):
        return IDLE_SILENCE_SECONDS
    interval = (run.plan.trigger_interval if run.plan else None) or 0.0
    return max(IDLE_SILENCE_SECONDS if run.idle else MIN_SILENCE_SECONDS, MIN_SILENT_INTERVALS * interval)


def trigger_began(run: Run) -> float:
    """When the present trigger began at the latest known: Spark starts them on multiples of the interval, but for those
    that follow each other without a pause."""
    interval = run.plan.trigger_interval if run.plan else None
    return math.ceil(run.last_seen / interval) * interval if interval and not _always_runs(run) else run.last_seen


def _always_runs(run: Run) -> bool:
    return run.plan is not None and run.plan.trigger in LONG_RUNNING
