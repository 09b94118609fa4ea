import pytest

from ledgerops.model.stops import stopped_with_application

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
        "py4j.Py4JException: Error while sending a command.\n\tat py4j.CallbackClient.sendCommand",
        "py4j.Py4JException: Error while obtaining a new communication channel",
        "x.StreamingQueryException: Query stopped\nCaused by: java.lang.IllegalStateException: Shutdown in progress",
    ],
)
def test_the_end_of_an_application_is_no_failure(exception):
    assert stopped_with_application(exception)


TRACEBACK = "Traceback (most recent call last):\n  the SparkContext was shut down"


@pytest.mark.parametrize(
    "exception",
    [
        pytest.param(SPARK + "Job aborted due to stage failure: Task 0 failed", id="a failure"),
        pytest.param(SPARK + "[SPARK_JOB_CANCELLED] Job 1 cancelled", id="one job"),
        pytest.param(SPARK + "Job 3 cancelled part of cancelled job group g", id="a group"),
        pytest.param("py4j.Py4JException: An exception was raised by the Python Proxy. Traceback", id="a callback's"),
        pytest.param(f"ValueError: bad\n{TRACEBACK}", id="a text of a row"),
        pytest.param(REJECTED.format("com.example.Upload@1f", "Terminated"), id="a pool of the application"),
        pytest.param(REJECTED.format(RUNNER, "Running"), id="a pool that is full"),
        pytest.param('Cannot invoke "Row.get(int)" because the return value of "Rates.of(Row)" is null', id="no value"),
        pytest.param("", id="nothing"),
    ],
)
def test_other_exceptions_are(exception):
    assert not stopped_with_application(exception)
