"""Sends a load plan of ledgerops under locust: its web interface, its workers, its reports.

    locust -f load/locustfile.py --plan default --bootstrap-servers localhost:9092

One PacerUser a worker; together they send exactly the records of the plan, however many workers there are. See
docs/load.md.
"""

import sys
from pathlib import Path
from typing import Any

import gevent
from locust import LoadTestShape, User, events, runners, task
from locust.runners import STATE_INIT, MasterRunner, WorkerRunner

sys.path.append(str(Path(__file__).resolve().parent.parent))  # wherever locust was started

from load.locust_master import MISSING_SECONDS, LoadMaster
from load.locust_worker import LoadWorker
from load.options import add_options

events.init_command_line_parser.add_listener(add_options)

runners.HEARTBEAT_LIVENESS = MISSING_SECONDS


@events.init.add_listener
def on_init(environment: Any, **_: Any) -> None:
    """A process that sends has a LoadWorker, the master a LoadMaster; without workers one process has both."""
    if not isinstance(environment.runner, MasterRunner):
        environment.load_worker = LoadWorker(environment)
    if not isinstance(environment.runner, WorkerRunner):
        environment.load_master = LoadMaster(environment)


class PacerUser(User):
    """The sender of a worker's share. A second one on the same worker has nothing to do."""

    def wait(self) -> None:
        """No wait between tasks: there is one task, and it lasts for the whole load."""

    @task
    def send(self) -> None:
        """Sends the worker's share, then waits until locust ends the user."""
        self.environment.load_worker.run()
        while True:  # until locust ends the user
            gevent.sleep(1.0)

    def on_stop(self) -> None:
        """Abandons what was not sent when locust ends the user early."""
        self.environment.load_worker.abandon()


class OneForEachWorker(LoadTestShape):
    """As many users as there are workers, whatever --users says, until the plan, --run-time or --records ends."""

    use_common_options = True  # --run-time is the load's --duration

    def tick(self) -> tuple[int, float] | None:
        master = self.runner.environment.load_master
        # locust asks once before it starts: what is over then is the load before this one
        if master.over and self.runner.state != STATE_INIT:
            return None
        return master.workers, max(master.workers, 1)
