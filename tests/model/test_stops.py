import pytest

from ledgerops.model.stops import stopped_with_application
from tests.tables import cases

SPARK = "org.apache.spark.SparkException: "
REJECTED = (
    "java.util.concurrent.RejectedExecutionException: Task {} rejected from java.util.concurrent.ThreadPoolExecutor@31a"
    "[{}, pool size = 0, active threads = 0, queued tasks = 0, completed tasks = 402]"
)
RUNNER = "org.apache.spark.executor.Executor$TaskRunner@5e1d"


@pytest.mark.parametrize(
    "exception",
    [
        SPARK + "[SPARK_JOB_CANCELLED] Job 12 cancelled as part of cancellation of all jobs",
        SPARK + "Job 1 cancelled because SparkContext was shut down\n\tat x.Y",
        "java.lang.IllegalStateException: SparkContext has been shutdown",
        "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nThis one was created at:",
        SPARK + "Job aborted\nCaused by: " + REJECTED.format(RUNNER, "Terminated"),
        REJECTED.format(RUNNER, "Shutting down"),
        'Cannot invoke "org.apache.spark.scheduler.DAGScheduler.cleanupQueryJobs(long)" because the return value of '
        '"org.apache.spark.SparkContext.dagScheduler()" is null',
        'Cannot invoke "x" because the return value of "org.apache.spark.SparkEnv$.get()" is null',
        SPARK + '[INTERNAL_ERROR] The "collect" action failed. You hit a bug in Spark or the Spark plugins you use.\n'
        'Caused by: java.lang.NullPointerException: Cannot invoke "org.apache.spark.sql.SparkSession.sparkContext()" '
        'because the return value of "org.apache.spark.sql.execution.SparkPlan.session()" is null',
        "py4j.Py4JException: Error while sending a command.\n\tat py4j.CallbackClient.sendCommand",
        "py4j.Py4JException: Error while obtaining a new communication channel",
        "x.StreamingQueryException: Query stopped\nCaused by: java.lang.IllegalStateException: Shutdown in progress",
    ],
)
def test_the_end_of_an_application_is_no_failure(exception):
    assert stopped_with_application(exception)


TRACEBACK = "Traceback (most recent call last):\n  the SparkContext was shut down"


@cases(
    "exception",
    ("a failure", SPARK + "Job aborted due to stage failure: Task 0 failed"),
    ("one job", SPARK + "[SPARK_JOB_CANCELLED] Job 1 cancelled"),
    ("a group", SPARK + "Job 3 cancelled part of cancelled job group g"),
    ("a callback's", "py4j.Py4JException: An exception was raised by the Python Proxy. Traceback"),
    ("a text of a row", f"ValueError: bad\n{TRACEBACK}"),
    ("a pool of the application", REJECTED.format("com.example.Upload@1f", "Terminated")),
    ("a pool that is full", REJECTED.format(RUNNER, "Running")),
    ("no value", 'Cannot invoke "Row.get(int)" because the return value of "Rates.of(Row)" is null'),
    ("nothing", ""),
)
def test_other_exceptions_are(exception):
    assert not stopped_with_application(exception)
