"""How the processes of a test run share its modules (pytest-xdist).

A process for each core begins with the modules whose tests use a JVM, a broker or a database. Such tests wait part of
their time, for those and for clocks: one more process, without servers of its own, runs other modules meanwhile.
"""

from collections.abc import Set
from functools import cached_property
from pathlib import Path

import psutil
import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

WITH_SERVERS = min(psutil.cpu_count() or 1, 4)  # processes that start a Spark session, a broker and a Postgres
_LIST = "modules_with_servers"  # the file in which the processes that collect tell it to the one that shares out


class ServersFirst(LoadScopeScheduling):
    """Modules in their order; processes beyond `WITH_SERVERS` take those without servers, from the end, and finish
    when there is none left."""

    @cached_property
    def _with_servers(self) -> Set[str]:
        return set(_file(self.config).read_text("utf-8").split("\n"))

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self._helps(node) and (module := self._without_servers()):
            self.workqueue.move_to_end(module, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        if self._helps(node) and self.workqueue and not node.shutting_down and not self._without_servers():
            node.shutdown()
        super()._reschedule(node)

    def _helps(self, node: WorkerController) -> bool:
        return node in self.nodes[WITH_SERVERS:]

    def _without_servers(self) -> str | None:
        return next((module for module in reversed(self.workqueue) if module not in self._with_servers), None)


def ask(node: WorkerController) -> None:
    """Asks a process that is about to start for the list."""
    node.workerinput[_LIST] = str(_file(node.config))


def answer(config: pytest.Config, modules: list[str]) -> None:
    """The modules that need servers, by their places from the root; nothing where no other process shares them out."""
    if asked := getattr(config, "workerinput", {}).get(_LIST):
        Path(asked).write_text("\n".join(modules), "utf-8")  # all processes write the same


def _file(config: pytest.Config) -> Path:
    return Path(config._tmp_path_factory.getbasetemp()) / _LIST  # type: ignore[attr-defined]
