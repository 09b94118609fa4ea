"""The executors of a driver and their cores."""

from collections.abc import Sequence

from ledgerops.model.records import DRIVER, Executor, Host
from ledgerops.signals.memo import kept


class Cluster:
    """The executors in the newest sample (`hosts`, oldest first) that has any."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = hosts

    @kept
    def executors(self) -> Sequence[Executor]:
        """The active executors that run tasks. Samples in which Spark did not answer have none and are skipped."""
        newest = next((sample for sample in reversed(self._hosts) if sample.executors), None)
        return [each for each in newest.workers if each.active] if newest is not None else []

    @property
    def is_empty(self) -> bool:
        """Whether the driver of a cluster is seen, and no executor."""
        return not self.executors and any(sample.executors for sample in self._hosts)

    @property
    def is_local(self) -> bool:
        """Whether the driver's JVM runs the tasks, too: local mode."""
        return {each.executor_id for each in self.executors} == {DRIVER}

    @property
    def cores(self) -> int | None:
        """How many tasks can run at once; None while no executor was seen."""
        return sum(each.cores for each in self.executors) or None
