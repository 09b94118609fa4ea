"""A session and its queries as the collectors see them, without Spark."""

import threading
from typing import Any

import orjson

from ledgerops.agent.connect_plan import SentPlans
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.sessions import ActiveQuery, Session
from ledgerops.common.deadline import OneAtATime
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.records import Plan
from ledgerops.runtime.runs import Run, Runs
from tests.build import T0


class FakeSession(Session):
    def __init__(self, key: str = "session") -> None:
        self.key = key
        self.queries: list[ActiveQuery] = []
        self.up = True
        self.classic = False
        self.sent_plans = SentPlans()
        self.let_go: list[str] = []
        self._questions, self._status_lock = OneAtATime("asking"), threading.Lock()

    @property
    def alive(self) -> bool:
        return self.up

    def active(self) -> list[ActiveQuery]:
        return self.queries

    def listen_again(self) -> None:
        pass

    def gone(self, run_id: str) -> None:
        self.let_go.append(run_id)


class RemoteSession:
    """What attach asks of a Spark Connect session, without a server."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, name: str = "session") -> None:
        self.session_id = name
        self.is_stopped = False
        self.streams = self
        self.active = ()
        self.listeners: list[Any] = []

    def addListener(self, listener: Any) -> None:
        self.listeners.append(listener)

    def removeListener(self, listener: Any) -> None:
        self.listeners.remove(listener)


class FakeQuery:
    """PySpark's handle on a query."""

    def __init__(self, message: str = "Processing new data", working: bool = True, problem: Any = None) -> None:
        self.status = {"message": message, "isTriggerActive": working, "isDataAvailable": True}
        self.problem = problem

    def exception(self) -> Any:
        return self.problem


def roster_of(*runs: Run) -> Runs:
    roster = Runs()
    roster._runs = {run.run_id: run for run in runs}
    return roster


def run_of(session: Session, run_id: str = "run-1", interval: float | None = 1.0, **changes: Any) -> Run:
    values: dict[str, Any] = {
        "query": "daily_counts",
        "query_id": "id-1",
        "run_id": run_id,
        "session": session,
        "last_seen": T0,
        "first_batch": 3,
        "last_batch": 3,
        "plan": Plan(run_id, "processing_time", interval),
    }
    return Run(**{**values, **changes})


def queue() -> EventQueue:
    return EventQueue(SelfStats())


def taken(box: EventQueue) -> list[tuple[str, dict[str, Any]]]:
    return [(event.kind, orjson.loads(event.data)) for event in box.take(0.0)]
