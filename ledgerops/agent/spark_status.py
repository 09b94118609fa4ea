"""What Spark knows of SQL executions, jobs, stages, tasks and executors, in the words of its REST interface."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ledgerops.model.spark_progress import parse_instant

FAILED = "FAILED"  # the status of tasks that come with a stage where not all of them do
QUANTILES = (0.5, 1.0)


class SqlExecution(NamedTuple):
    """A part of a batch that Spark ran as one statement."""

    number: int
    description: str  # names query, run and batch
    jobs: tuple[int, ...]  # that have ended
    is_running: bool
    started: float
    seconds: float  # until it ended, 0 while it runs
    error: str | None = None  # with which it ended
    is_known: bool = True  # False where Spark kept it no longer when it had ended


class SparkStatus(Protocol):
    """One application. Its methods raise OSError without an answer, and ValueError when it cannot be read."""

    asked: int  # how often anything was asked

    def executions(self, offset: int, length: int) -> Sequence[SqlExecution]:
        """At most so many of those that Spark keeps, oldest first, without the first `offset`."""

    def execution(self, number: int) -> SqlExecution | None:
        """One of them; None when Spark does not keep it."""

    def job(self, number: int) -> Mapping[str, Any] | None:
        """A job with its stages, as of `/jobs/{number}`; None when Spark does not keep it."""

    def stage(self, number: int, with_tasks: bool) -> Mapping[str, Any] | None:
        """The newest attempt at a stage with the executors' shares, as of `/stages/{number}`; None when Spark does not
        keep it. With all of its tasks, or with those that failed and the QUANTILES of all."""

    def tasks(self, stage: int, attempt: int, most: int) -> Sequence[Mapping[str, Any]]:
        """At most so many tasks of an attempt, as of `/stages/{stage}/{attempt}/taskList`."""

    def metrics(self, execution: int) -> Iterable[tuple[str, str]]:
        """Names and values of an execution's metrics, as the page SQL shows them."""

    def executors(self) -> Sequence[Mapping[str, Any]]:
        """All executors, also those that are gone, as of `/allexecutors`."""


def rest_instant(text: object) -> float | None:
    """Seconds since the epoch from a time such as `2026-01-31T12:00:00.000GMT`; None from anything else."""
    return parse_instant(text.replace("GMT", "Z")) if isinstance(text, str) else None
