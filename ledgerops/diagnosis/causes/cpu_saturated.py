"""CPU saturated: all cores that the driver may use are busy, and batches take longer because of it.

Meaning: batches need much longer than they would with free cores. Either other processes use the machine, or the
    driver's container has a CPU limit that is used up: then the machine may be idle, and the container still stops all
    threads until the next period of its limit (100 ms) begins.
Impact: everything that the query does takes longer, including planning and commits, and it falls behind.
Diagnosis: 1. Read in the finding who uses most cores, or compare
    `rate(ledgerops_process_cpu_seconds_total{app="APP"}[5m])` by `kind` with
    `ledgerops_host_cpu_busy_ratio{app="APP"}`. What the driver and its workers do not use is used by other processes.
    2. If other processes use the cores, `top -o %CPU` on the driver's machine names them. If a limit is used up,
    `rate(ledgerops_host_cpu_held_back_seconds_total{app="APP"}[5m])` is how many more cores the container would use
    than the `ledgerops_host_cpu_limit_cores{app="APP"}` that it may.
    3. If Python workers use the cores, a user-defined function is expensive: see `python-bound`. If the driver's JVM
    does, the tasks themselves fill the cores: see `input-overload` and `gc-pressure`.
Mitigation: raise a limit that is used up (`spark.kubernetes.driver.limit.cores`, `docker update --cpus`). Move the
    other processes, or give the driver cores that nothing else may use. For Python workers, vectorise
    the function or write it with Spark's own functions. For the JVM, add cores, at most as many as there are tasks, or
    run fewer queries in this driver.
"""

import math

from ledgerops.common.format import counted
from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts import contention
from ledgerops.diagnosis.profile import Profile
from ledgerops.diagnosis.rule import LATE
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component
from ledgerops.signals.query_view import QueryView

FIND = first_step(
    "cpu-saturated", GENERAL, "the query can only use the cores that they leave free", command="top -o %CPU"
)


def _tell(view: QueryView, found: Profile) -> Told:
    use, who, step = contention.cpu_use(view), found.contention and found.contention.who, FIND
    if use is not None and who == contention.LIMIT:
        why = "its threads are held back for the rest of each period, on a machine with free cores, too"
        step = first_step("cpu-saturated", "limit", why, cores=counted(math.ceil(use.wanted), "core"))
    return Told(Component("host", "the driver's machine", who), (step,))


CAUSE = Cause(
    slug="cpu-saturated",
    runbook=__doc__,
    parts=("other_processes", "cpu_limit"),
    happened="{held}: that takes {seconds} of a batch of {batch}",
    explains=(*LATE, "freshness-breach", "checkpoint-slow", "state-commit-slow", "intermittent-sink"),
    formulas=contention.FORMULAS,
    tell=_tell,
)
