"""CPU saturated: all cores of the driver's machine are busy, and batches take longer because of it.

Meaning: batches need much longer for the same number of rows while hardly any core is free. Either other processes use
    the machine, or the work of the query itself has become more expensive.
Impact: everything that the query does takes longer, including planning and commits, and it falls behind.
Diagnosis: 1. Read in the finding who uses most cores, or compare
    `rate(ledgerops_process_cpu_seconds_total{app="APP"}[5m])` by `kind` with
    `ledgerops_host_cpu_busy_ratio{app="APP"}`. What the driver and its workers do not use is used by other processes.
    2. If other processes use the cores, `top -o %CPU` on the driver's machine names them.
    3. If Python workers use the cores, a user-defined function is expensive: see `python-bound`. If the driver's JVM
    does, the tasks themselves fill the cores: see `input-overload` and `gc-pressure`.
Mitigation: move the other processes, or give the driver cores that nothing else may use. For Python workers, vectorise
    the function or write it with Spark's own functions. For the JVM, add cores, at most as many as there are tasks, or
    run fewer queries in this driver.
"""

from ledgerops.diagnosis.cause import Cause, Words
from ledgerops.diagnosis.facts import contention
from ledgerops.diagnosis.facts.context import ANY
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component

FIND = first_step(
    "cpu-saturated", GENERAL, "the query can only use the cores that they leave free", command="top -o %CPU"
)

CAUSE = Cause(
    slug="cpu-saturated",
    runbook=__doc__,
    parts=("other_processes",),
    words=Words(happened="{held}: that takes {seconds} of a batch of {batch}", first={ANY: FIND}),
    component=lambda view, found: Component("host", "the driver's machine", found.contention and found.contention.who),
    explains=(
        "falling-behind",
        "trigger-overrun",
        "freshness-breach",
        "checkpoint-slow",
        "state-commit-slow",
        "intermittent-sink",
    ),
    formulas=contention.FORMULAS,
)
