"""Python bound: Python workers take most of the run time of a batch's tasks.

Meaning: a user-defined function sends each row from the JVM to a Python worker and back. The tasks spend most of their
    time waiting for the Python workers and use little JVM CPU.
Impact: batches outlast the trigger interval. A faster JVM, more memory or a better plan does not help.
Diagnosis: 1. Check `rate(ledgerops_process_cpu_seconds_total{kind="python_workers"}[5m])`. Near the number of cores,
    the functions compute; near zero, they wait, for example for a service that they call.
    2. In the Spark UI, page "SQL", the metric "time to run Python workers" of each Python node shows which function
    takes the time.
    3. `py-spy dump --pid PID` on one of the workers shows the line that it executes. A network call there means one
    request for each row.
Mitigation: if the function calls a service, check that service first. Then load models and connections once instead of
    for each row, and call services for many rows at once. Write the function in Spark SQL if possible, otherwise
    vectorise it (`pandas_udf`, or `udf(useArrow=True)`). More cores help as long as the source or the shuffle has more
    partitions than the query has cores.
"""

from ledgerops.diagnosis.cause import Cause, Words
from ledgerops.diagnosis.facts.context import ANY
from ledgerops.diagnosis.profile import Profile
from ledgerops.model.finding import Component, Remedy
from ledgerops.signals.query_view import QueryView

MAX_JVM_CPU_SHARE = 0.5  # of the task time: with more of it on the JVM's CPU the work is the JVM's


def _jvm_waits(view: QueryView, found: Profile) -> bool:
    stages = [each.stage for split in found.splits for each in split.stages]
    ran = sum(stage.run_seconds for stage in stages)
    return ran > 0 and sum(stage.cpu_seconds for stage in stages) < MAX_JVM_CPU_SHARE * ran


CAUSE = Cause(
    slug="python-bound",
    runbook=__doc__,
    parts=("python",),
    min_share=0.45,  # a Python source that only passes rows on has less
    words=Words(
        happened="Python workers take {seconds} of a batch of {batch}",
        first={
            ANY: Remedy(
                "find out what the function waits for: `py-spy dump --pid PID` on one of the Python workers",
                "workers that use little CPU wait for a service; one call per row is slow on any number of cores",
            )
        },
        then=(
            Remedy(
                "write the function in Spark SQL, or vectorise it with pandas_udf",
                "rows sent to a Python worker are copied, converted and processed one at a time",
                safe=False,
            ),
        ),
    ),
    component=lambda view, found: Component("stage", "Python workers"),
    holds=_jvm_waits,
)
