"""What Spark's stores say in the JVM, compared with what its REST interface says, of a real query."""

import time

import pytest

from ledgerops.agent.driver_status import DriverStatus, driver_threads
from ledgerops.agent.host import parse_executor
from ledgerops.agent.spark_rest import SparkRest
from ledgerops.agent.stacks import WANTED, stacks_of
from ledgerops.agent.tasks import python_seconds, read_stage
from ledgerops.model.statements import batch_of
from tests.programs import until


@pytest.fixture(scope="module")
def run(spark, tmp_path_factory):
    """The run id of a query that has ended, with Python and a shuffle; Spark knows what it did."""
    from pyspark.sql import functions as F

    def slowly(value):
        time.sleep(0.001)
        return value

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).option("numPartitions", 2).load()
    counts = rows.groupBy((F.udf(slowly, "long")("value") % 10).alias("key")).count()
    writer = counts.writeStream.format("noop").outputMode("update")
    query = writer.option("checkpointLocation", str(tmp_path_factory.mktemp("checkpoint"))).start()
    try:
        until(lambda: len(query.recentProgress) >= 3)
    finally:
        query.stop()
    rest = in_rest(spark)
    until(lambda: not any(each.is_running for each in of(query.runId, rest)))
    return str(query.runId)


def in_rest(spark):
    return SparkRest(spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId)


def of(run, status):
    found = status.executions(0, 1000)
    return [each for each in found if (batch := batch_of(each.description)) and batch[0] == str(run)]


def done(run, status):
    """An execution of a batch that ended, with its only job."""
    return next(each for each in of(run, status) if each.jobs)


def test_both_name_the_same_executions_with_their_jobs(spark, run):
    status = DriverStatus(spark)
    executions, every = of(run, status), status.executions(0, 1000)

    assert executions == of(run, in_rest(spark))
    assert sum(len(each.jobs) for each in executions) >= 3
    assert all(each.seconds > 0 for each in executions)
    assert status.executions(len(every) - 3, 2) == every[-3:-1]
    assert status.executions(len(every) + 10, 5) == []
    for asked in (status, in_rest(spark)):
        assert (asked.execution(executions[0].number), asked.execution(10**6)) == (executions[0], None)


@pytest.mark.parametrize("with_tasks", [True, False])
def test_both_tell_the_same_of_a_stage(spark, run, with_tasks):
    driver, rest = DriverStatus(spark), in_rest(spark)
    job = driver.job(done(run, driver).jobs[0])
    assert (job["numTasks"], job["stageIds"]) == (4, rest.job(job["jobId"])["stageIds"])

    stages = [read_stage(driver, stage, with_tasks) for stage in job["stageIds"]]
    assert stages == [read_stage(rest, stage, with_tasks) for stage in job["stageIds"]]
    assert [stage.tasks for stage in stages] == [2, 2]
    assert {stage.records for stage in stages} >= {100}


def test_both_tell_the_same_tasks(spark, run):
    driver, rest = DriverStatus(spark), in_rest(spark)
    [stage, *_] = driver.job(done(run, driver).jobs[0])["stageIds"]
    both = [{each["taskId"]: each["taskMetrics"] for each in status.tasks(stage, 0, 64)} for status in (driver, rest)]
    assert both[0] == both[1]
    assert len(both[0]) == 2
    assert len(driver.tasks(stage, 0, 1)) == 1


def test_both_tell_the_same_time_of_python(spark, run):
    driver, rest = DriverStatus(spark), in_rest(spark)
    number = done(run, driver).number
    assert python_seconds(driver, number) == python_seconds(rest, number) > 0.05


def test_both_tell_the_same_executors(spark, run):
    fixed = [
        [(each.executor_id, each.cores, each.completed_tasks, each.memory_max_bytes) for each in found]
        for found in (map(parse_executor, status.executors()) for status in (DriverStatus(spark), in_rest(spark)))
    ]
    assert fixed[0] == fixed[1]
    assert fixed[0][0][:2] == ("driver", 2)


def test_what_spark_does_not_keep_is_none(spark):
    status = DriverStatus(spark)
    assert status.stage(10**6, with_tasks=True) is None
    assert status.job(10**6) is None
    assert [*status.metrics(10**6)] == []
    assert status.asked == 4


def test_an_answer_that_the_jvm_refuses_is_an_error_of_the_system_in_one_line(spark):
    with pytest.raises(OSError, match=r"^[^\n]+$"):
        DriverStatus(spark)._read(lambda: spark._jvm.java.lang.Integer.parseInt("x"))


def test_the_threads_of_tasks_and_of_their_query_are_found_with_what_they_wait_in(spark):
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).option("numPartitions", 2).load()
    query = rows.writeStream.foreach(lambda row: time.sleep(600)).start()
    try:
        tracker = spark.sparkContext.statusTracker()
        until(lambda: any(stage.numActiveTasks == 2 for stage in running(tracker, query)))
        [stage] = [stage.stageId for stage in running(tracker, query)]
        found = stacks_of(str(query.runId), driver_threads(spark, WANTED.match), {stage})
        assert [(each.task, each.count) for each in found] == [(True, 2), (False, 1)]
        assert any("PythonForeachWriter" in frame for frame in found[0].frames)
        assert driver_threads(spark, lambda name: False) == []
    finally:
        spark.sparkContext.cancelJobGroup(str(query.runId))
        query.stop()


def running(tracker, query):
    """The stages of a query's jobs that Spark knows."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(query.runId))]
    return [stage for job in jobs if job for stage in map(tracker.getStageInfo, job.stageIds) if stage]
