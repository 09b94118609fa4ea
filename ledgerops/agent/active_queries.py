"""The runs that are on, as the collectors need them. The worker writes it, the collectors' threads read it."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

from ledgerops.agent.queue import Event
from ledgerops.agent.sessions import Session
from ledgerops.model.records import Observation, Plan
from ledgerops.runtime.registry import QueryState

SIGNS = ("started", "progress", "idle")  # of life, by Spark's own word
ENDED = 1000  # run ids remembered after their end: late observations must not bring a run back


@dataclass(slots=True)
class Run:
    """One run of a query. `last_batch` is None before the first, `plan` before it was read."""

    query: str
    query_id: str
    run_id: str
    session: Session
    last_seen: float
    idle: bool = False
    last_batch: int | None = None
    plan: Plan | None = None
    handle: Any = None  # PySpark's StreamingQuery, once somebody has asked for it


class Roster:
    """`note` is the worker's hook; `runs` gives a copy of the list, whose items go on changing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._ended: deque[str] = deque(maxlen=ENDED)

    def note(self, event: Event, seen: Observation, state: QueryState) -> None:
        run_id = seen.data.get("runId") or seen.data.get("run_id")
        if not isinstance(run_id, str):
            return
        with self._lock:
            if seen.kind == "terminated":
                self._ended.append(run_id)
                self._runs.pop(run_id, None)
                return
            run = self._runs.get(run_id)
            if run is None:
                if not isinstance(event.origin, Session) or run_id in self._ended:
                    return
                query_id = str(seen.data.get("id") or "")
                run = self._runs[run_id] = Run(state.history.query, query_id, run_id, event.origin, event.at)
            if seen.kind in SIGNS:
                run.last_seen = max(run.last_seen, event.at)
                run.idle = seen.kind == "idle"
            if seen.kind == "progress":
                run.last_batch = int(seen.data["batchId"])
            elif seen.kind == "plan":
                run.plan = state.history.plan

    def runs(self) -> list[Run]:
        with self._lock:
            return list(self._runs.values())

    def readmit(self) -> None:
        """Forgets who has ended: a session that is attached again may have runs that go on."""
        with self._lock:
            self._ended.clear()

    def knows(self, run_id: str) -> bool:
        """Whether a run is on, or was and has ended."""
        with self._lock:
            return run_id in self._runs or run_id in self._ended
