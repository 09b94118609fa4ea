"""The worker: one thread that turns observations into recording lines, state, verdicts and the snapshot.

It alone touches the registry. Each step is guarded: what fails is counted and logged once, and the rest continues.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import orjson

from ledgerops.agent.queue import Event, EventQueue
from ledgerops.agent.recording_writer import RecordingWriter
from ledgerops.common.masking import short_exception
from ledgerops.config import Config
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.history import MAX_CLOCK_STEP_SECONDS, ClockStep
from ledgerops.model.recording import Recorder, decode, encode, load_json
from ledgerops.model.records import Observation
from ledgerops.model.spark_progress import BadRecord
from ledgerops.model.stops import stopped_with_application
from ledgerops.runtime.registry import QueryRegistry, QueryState
from ledgerops.runtime.snapshot import QuerySnapshot, Snapshot
from ledgerops.signals.query_view import QueryView

log = logging.getLogger("ledgerops")

DEFAULTS = Config()
TICK_SECONDS = 5.0  # after which a query without news is judged again: silence is also a sign
TOGETHER_SECONDS = 0.5  # for which a query that is due waits for others, so that one turn judges them all
MAX_TICKS_PER_SECOND = 50.0  # such judgements; with more queries each of them waits longer
MAX_TICK_SECONDS = 15.0  # at most, with any number: half of the shortest silence that a rule waits for (query-stuck)
# recording lines kept in memory for /recording: 10 min of 4 queries with a batch a second
RING_BYTES = 8 * 1024 * 1024
HELD_UP_SECONDS = 1.0  # between two looks at a clock, after which they are not of one moment
STALLED_SECONDS = 15.0  # without a turn, after which the worker counts as stuck
TOLD_OF_AN_END = ("exception", "application_error")  # texts of a `terminated` record that are masked


class Worker:
    """`snapshot` and `ring` may be read by any thread."""

    def __init__(
        self, queue: EventQueue, registry: QueryRegistry, stats: SelfStats, config: Config = DEFAULTS,
        recorder: Recorder | None = None, clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.snapshot = Snapshot()
        self.on_snapshot: Callable[[Snapshot], None] | None = None  # called in this thread: it may not wait
        self.ring: deque[tuple[float, str | None, bytes]] = deque()
        self.last_turn = time.monotonic()
        self._queue, self._registry, self._stats = queue, registry, stats
        self._config = config
        self._queries: dict[str, QuerySnapshot] = {}
        self._writer: RecordingWriter | None = None
        if recorder is not None:
            recorder.head = self._plans_of_active
            self._writer = RecordingWriter(recorder, stats, self._failed, steady)
        self._clock, self._steady = clock, steady
        self._now = self._steadily = -math.inf  # of the last turn; before the first no step can be told
        self._ring_bytes = 0
        self._warned: set[str] = set()
        self._judged_at: dict[str, float] = {}  # when, by the steady clock
        self._due = -math.inf  # when the next query without news is judged, by the steady clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledgerops-worker", daemon=True)

    def start(self) -> None:
        """Starts the worker's thread, and that of the recording. Call it once."""
        if self._writer is not None:
            self._writer.start()
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Processes what is queued, then ends. May be called twice."""
        self._stopping.set()
        self._queue.wake()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        if self._writer is not None:
            self._writer.stop(timeout)

    def close_inherited(self) -> None:
        """In a forked child: what is not yet written of the recording is the parent's to write."""
        if self._writer is not None:
            self._writer.discard()

    def trouble(self) -> str | None:
        """Why the worker is not working; None while it is."""
        if not self._thread.is_alive():
            return "the worker has ended"
        silent = time.monotonic() - self.last_turn
        return f"the worker has been stuck for {silent:.0f} s" if silent > STALLED_SECONDS else None

    def pause(self) -> str | None:
        """Why nothing is recorded at present; None while it is, or where it is not wanted."""
        return None if self._writer is None else self._writer.pause()

    def idle_seconds(self) -> float:
        """How long a turn may wait for an event: until queries without news are judged again."""
        return max(0.0, min(TICK_SECONDS, self._due - self._steady()) + TOGETHER_SECONDS)

    def turn(self, timeout: float = 0.0) -> None:
        """Processes the events that wait, after at most `timeout` seconds, and replaces the snapshot."""
        self.last_turn = time.monotonic()
        changed: dict[str, QueryState] = {}
        for event in self._queue.take(timeout):
            state = self._take(event)
            if state is not None and not _can_wait(event, state):
                changed[state.history.query] = state
        with self._stats.lock:
            self._stats.queue_size = len(self._queue)
        now, steady = self._clocks()
        step = ClockStep(now, now - self._now - (steady - self._steadily))
        if abs(step.seconds) > MAX_CLOCK_STEP_SECONDS:
            log.warning("the machine's clock was set by %+.0f s: rates and findings start over", step.seconds)
            self._registry.forget_times(step)
            self._judged_at.clear()
        self._now, self._steadily = now, steady
        tick = tick_seconds(len(self._registry.queries))
        due = {query: self._judged_at.get(query, -math.inf) + tick for query in self._registry.queries}
        changed |= {query: self._registry.queries[query] for query, at in due.items() if at <= steady}
        self._due = min((at for query, at in due.items() if query not in changed), default=steady + tick)
        self._publish(changed, now)
        if self._writer is not None:
            self._writer.flush()

    def _clocks(self) -> tuple[float, float]:
        """The machine's clock and the steady one at the same moment: a busy machine may hold a thread up in between."""
        while True:
            before, now, steady = self._steady(), self._clock(), self._steady()
            if steady - before < HELD_UP_SECONDS:
                return now, steady

    def _run(self) -> None:
        while not self._stopping.is_set() or len(self._queue):
            try:
                self.turn(self.idle_seconds())
            except Exception as error:
                self._failed("worker", error)

    def _take(self, event: Event) -> QueryState | None:
        began = time.perf_counter()
        try:
            data = load_json(event.data)
            if not isinstance(data, dict):
                raise BadRecord("not an object")
            seen = Observation(event.at, event.kind, event.query, data)
            for key in TOLD_OF_AN_END if event.kind == "terminated" else ():
                if isinstance(text := data.get(key), str):
                    short = short_exception(text, masked=not self._config.exception_text)
                    # a masked one names no class any more
                    marks = {"with_application": True} if key == "exception" and stopped_with_application(text) else {}
                    seen = replace(seen, data={**seen.data, key: short, **marks})
            state = self._registry.ingest(seen, event.origin)
        except (ValueError, TypeError, AttributeError, KeyError, BadRecord) as error:
            self._failed("parse", error)
            return None
        finally:
            self._stats.spent("parse", time.perf_counter() - began)
        if state is not None and event.kind == "progress":
            self._tell_unknown_forms(state)
        try:
            self._record(event, seen, state)
        except Exception as error:  # text that cannot be written as UTF-8
            self._failed("record", error)
        return state

    def _tell_unknown_forms(self, state: QueryState) -> None:
        """Logs once for each kind of source that its offsets cannot be counted."""
        for source in state.history.last.sources if state.history.last else ():
            if not source.known_form and f"offsets {source.name}" not in self._warned:
                self._warned.add(f"offsets {source.name}")
                log.warning(
                    "the offsets of the source %.80s of %.80s have an unknown form: no backlog and no lag are known",
                    source.name, state.history.query,
                )  # fmt: skip

    def _record(self, event: Event, seen: Observation, state: QueryState | None) -> None:
        began = time.perf_counter()
        data = orjson.dumps(seen.data) if event.kind == "terminated" else event.data
        raw = data if isinstance(data, bytes) else data.encode("utf-8", "replace")
        line = encode(event.at, event.kind, state.history.query if state else event.query, raw)
        self.ring.append((event.at, state.history.query if state else None, line))
        self._ring_bytes += len(line)
        while self._ring_bytes > RING_BYTES:
            self._ring_bytes -= len(self.ring.popleft()[2])
        if self._writer is not None:
            self._writer.add(line)
        self._stats.spent("record", time.perf_counter() - began)

    def plan_lines(self, at: float, queries: Iterable[str]) -> bytes:
        """The plans of the queries' runs, read at their start only, as lines of a recording at an instant. For any
        thread."""
        states = ((query, self._registry.queries.get(query)) for query in queries)
        known = ((query, state.history) for query, state in states if state is not None)
        return b"".join(
            encode(at, "plan", query, orjson.dumps(history.plan))
            for query, history in known
            if history.plan is not None and history.plan.run_id == history.run_id
        )

    def _plans_of_active(self, lines: bytes) -> bytes:
        """The plans at the head of a segment that begins with these lines, which may have waited."""
        active = [name for name, state in self._registry.queries.copy().items() if state.history.ended is None]
        return self.plan_lines(decode(lines.partition(b"\n")[0]).at, active)

    def _publish(self, changed: Mapping[str, QueryState], now: float) -> None:
        hosts = tuple(self._registry.hosts)
        if not changed and hosts == self.snapshot.hosts:
            return
        for name in self._judged_at.keys() - self._registry.queries.keys():
            del self._judged_at[name]
            self._queries.pop(name, None)
        for name, state in changed.items():
            self._judged_at[name] = self._steady()
            view = self._registry.view(state, now)
            began = time.perf_counter()
            self._judge(state, view)
            judged = time.perf_counter()
            try:
                self._queries[name] = QuerySnapshot(
                    state, view, self._config.series_per_query, self._failed, self._config.ended_totals_seconds
                )
            except Exception as error:
                self._failed("snapshot", error)
            self._stats.spent("judge", judged - began)
            self._stats.spent("snapshot", time.perf_counter() - judged)
        began = time.perf_counter()
        self.snapshot = Snapshot(now, self._queries.copy(), hosts, self._config.series_total, self._failed)
        if self.on_snapshot is not None:
            try:
                self.on_snapshot(self.snapshot)
            except Exception as error:
                self._failed("otlp", error)
        self._stats.spent("snapshot", time.perf_counter() - began)

    def _judge(self, state: QueryState, view: QueryView) -> None:
        """A fresh verdict. A diagnoser continues when one of its rules raises, and counts that by rule in `errors`."""
        before = state.judge.errors.copy()
        try:
            state.verdict = state.judge(view)
        except Exception as error:
            self._failed("judge", error)
        for rule, count in (state.judge.errors - before).items():
            for _ in range(count):
                self._stats.error("rule")
            if f"rule {rule}" not in self._warned:
                self._warned.add(f"rule {rule}")
                log.warning(
                    "the rule %s failed on %.80s; further failures of this rule are only counted", rule, view.query
                )

    def _failed(self, part: str, error: Exception, text: str = "") -> None:
        self._stats.error(part)
        if part not in self._warned:
            self._warned.add(part)
            reason = f"{type(error).__name__}: {error}"
            log.warning("%s (%.300s); further failures are only counted", text or f"{part} failed", reason)


def _can_wait(event: Event, state: QueryState) -> bool:
    """Whether a query is judged no earlier for this. Brokers and tables answer all the time, a plan is read at the
    start and after the first batch, and the tasks of a batch say why something is wrong, where something is."""
    history, verdict = state.history, state.verdict
    if event.kind == "offsets":
        return history.heads[-1].error is None
    if event.kind == "tables":
        return history.tables is not None and not history.tables.errors
    if event.kind == "tasks":
        return verdict is not None and all(finding.severity == "info" for finding in verdict.findings)
    return event.kind == "plan"


def tick_seconds(queries: int) -> float:
    """Seconds after which each of so many queries is judged again without news."""
    return min(MAX_TICK_SECONDS, max(TICK_SECONDS, queries / MAX_TICKS_PER_SECOND))
