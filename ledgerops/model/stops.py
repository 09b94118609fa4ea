"""Whether an exception says that a query ended only because its application did: by Ctrl-C, a signal, or another error.

Spark reports such an end like a failure. The texts are those of SparkContext.cancelAllJobs, which PySpark calls on
Ctrl-C, of DAGScheduler.cleanUpAfterSchedulerStop, of an executor that takes no more tasks, of a SparkContext, an
environment or a plan without what they had until it was stopped, and of py4j where the Python side has gone.
"""

import re

CAUSE = "Caused by: "
OF_JVM = " of its JVM"  # ends what an application ended with that has lost its JVM, as in `SIGKILL of its JVM`
STOPS = re.compile(
    r"\bJob \S+ cancelled (?:as part of cancellation of all jobs|because SparkContext was shut down)"
    r"|\bSparkContext (?:is|was|has been) (?:shutting down|shut ?down|stopped)\b"
    r"|\bstopped SparkContext\b"
    r"|\breturn value of \"org\.apache\.spark\.(?:SparkContext\.dagScheduler|SparkEnv\$?\.get"
    r"|sql\.execution\.SparkPlan\.session)\(\)\" is null"
    r"|\bShutdown in progress\b"
    r"|\bRejectedExecutionException: Task \S+TaskRunner\S* rejected from \S+\[(?:Shutting down|Terminated)"
    r"|\bpy4j\.Py4J(?:Network)?Exception: (?:Error while (?:sending|obtaining|reading)|Answer from Python side)"
)


def stopped_with_application(exception: str) -> bool:
    """Whether the first line of an exception, or that of one of its causes, is one of STOPS."""
    lines = exception.strip().splitlines()
    return any(STOPS.search(line) for line in [*lines[:1], *(each for each in lines[1:] if each.startswith(CAUSE))])
