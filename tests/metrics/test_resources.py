"""Series of executors: those that run tasks."""

from ledgerops.metrics.resources import METRICS
from ledgerops.model.records import Executor, Host
from tests.build import T0
from tests.tables import cases

RUN_SECONDS = next(each for each in METRICS if each.name == "ledgerops_executor_run_seconds_total")


def executor(name: str, cores: int, run_seconds: float) -> Executor:
    return Executor(name, True, cores, 0, 0, 0, run_seconds, 1.0, 0, 2**30)


OF_CLUSTER = (executor("driver", 0, 299.0), executor("0", 2, 12.0), executor("1", 2, 10.0))


@cases(
    "executors, series",
    ("on a cluster the driver's run time is its uptime", OF_CLUSTER, {("0",): 12.0, ("1",): 10.0}),
    ("in local mode Spark gives its age, too", (executor("driver", 2, 12.0),), {}),
    ("a cluster that has given no executor yet", (executor("driver", 0, 299.0),), {}),
)
def test_only_executors_that_run_tasks_have_series(executors, series):
    assert RUN_SECONDS.read(Host(T0, 2, 0.5, 2**33, 2**32, None, None, (), executors)) == series
