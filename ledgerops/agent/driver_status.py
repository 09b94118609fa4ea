"""The stores behind the Spark UI, read in the driver's JVM: also where the UI is off, or a proxy stands before it.

Spark's own writer of REST answers makes the JSON, so the documents are the same. The way through HTTP costs the driver
several times the CPU (docs/decisions/041-spark-is-asked-in-its-jvm.md).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from ledgerops.agent.spark_status import FAILED, QUANTILES, SqlExecution, rest_instant
from ledgerops.common.immortal import never_free

API = "org.apache.spark.status.api.v1"
# large, and nobody reads them: plans, the values of metrics, and what accumulators got from each task
LEFT_OUT = {
    "org.apache.spark.sql.execution.ui.SQLExecutionUIData": (
        "details", "logicalPlanDescription", "metricValues", "metrics", "modifiedConfigs", "physicalPlanDescription",
        "stages",
    ),
    f"{API}.StageData": ("accumulatorUpdates", "details", "rddIds"),
    f"{API}.TaskData": ("accumulatorUpdates", "executorLogs"),
}  # fmt: skip
MAX_DEPTH = 300  # of a stack that is read
JOB_HAS_ENDED = ("SUCCEEDED", "FAILED")


class Tools(NamedTuple):
    """Objects in the JVM of a gateway, made once for it. They are never freed: in a forked child py4j would tell the
    JVM so, in the middle of what the parent asks."""

    gateway: Any
    mapper: Any  # Spark's writer of JSON: it studies each class when it first writes one
    every_status: Any
    failed: Any
    no_quantiles: Any
    quantiles: Any


_tools: Tools | None = None


class DriverStatus:
    """The application of a classic session. Raises what py4j raises where a platform does not let Python do this."""

    def __init__(self, spark: Any) -> None:
        context = spark.sparkContext
        self.asked = 0
        self._store = context._jsc.sc().statusStore()
        self._sql = spark._jsparkSession.sharedState().statusStore()
        self._tools = _tools_of(context._gateway)

    def executions(self, offset: int, length: int) -> Sequence[SqlExecution]:
        return [_execution(each) for each in self._read(lambda: self._sql.executionsList(offset, length))]

    def execution(self, number: int) -> SqlExecution | None:
        """As SparkStatus says."""
        found = self._read(lambda: self._sql.execution(number).get())
        return None if found is None else _execution(found)

    def job(self, number: int) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self._read(lambda: self._store.job(number))
        return found

    def stage(self, number: int, with_tasks: bool) -> Mapping[str, Any] | None:
        tools = self._tools
        tasks = tools.every_status if with_tasks else tools.failed
        quantiles = tools.no_quantiles if with_tasks else tools.quantiles
        attempts = self._read(lambda: self._store.stageData(number, True, tasks, not with_tasks, quantiles))
        return attempts[-1] if attempts else None

    def tasks(self, stage: int, attempt: int, most: int) -> Sequence[Mapping[str, Any]]:
        """As SparkStatus says; of more tasks the newest."""
        return list(self._read(lambda: self._store.taskList(stage, attempt, most)))

    def metrics(self, execution: int) -> Iterable[tuple[str, str]]:
        metrics = self._read(lambda: self._sql.execution(execution).get().metrics()) or ()
        values = self._read(lambda: self._sql.executionMetrics(execution)) or {}
        names = {str(each["accumulatorId"]): each["name"] for each in metrics}  # a plan that adapts itself repeats them
        return [(name, values.get(number, "")) for number, name in names.items()]

    def executors(self) -> Sequence[Mapping[str, Any]]:
        return list(self._read(lambda: self._store.executorList(False)))

    def _read(self, ask: Callable[[], Any]) -> Any:
        self.asked += 1
        try:
            return orjson.loads(self._tools.mapper.writeValueAsString(ask()))
        except Py4JJavaError as error:
            if str(error.java_exception.getClass().getName()) == "java.util.NoSuchElementException":
                return None
            raise OSError(_first_line(error.java_exception)) from error
        except (Py4JError, PySparkException) as error:
            raise OSError(_first_line(error)) from error


def driver_threads(spark: Any, wanted: Callable[[str], object]) -> Sequence[tuple[str, bool, Sequence[str]]]:
    """The threads of the driver's JVM whose names are `wanted`: the name, whether the JVM runs it as far as it knows
    (it may wait in native code), and classes with methods, the innermost first. Without their locks: to find these, a
    JVM stops all threads and walks through its heap. Raises what py4j raises."""
    jvm, gateway = spark.sparkContext._jvm, spark.sparkContext._gateway
    bean, mapper = jvm.java.lang.management.ManagementFactory.getThreadMXBean(), _tools_of(gateway).mapper
    every = orjson.loads(mapper.writeValueAsString(bean.getThreadInfo(bean.getAllThreadIds())))
    chosen = [each["threadId"] for each in every if each and wanted(each["threadName"])]
    infos = bean.getThreadInfo(_array(gateway, jvm.long, chosen), MAX_DEPTH)
    return [
        (each["threadName"], each["threadState"] == "RUNNABLE",
         [f"{frame['className']}.{frame['methodName']}" for frame in each["stackTrace"]])
        for each in orjson.loads(mapper.writeValueAsString(infos))
        if each
    ]  # fmt: skip


def _first_line(problem: object) -> str:
    return str(problem).partition("\n")[0] or type(problem).__name__


def _tools_of(gateway: Any) -> Tools:
    global _tools
    if _tools is None or _tools.gateway is not gateway:
        jvm = gateway.jvm
        mapper = jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
        mapper.disable(jvm.com.fasterxml.jackson.databind.SerializationFeature.INDENT_OUTPUT)
        ignored = jvm.com.fasterxml.jackson.annotation.JsonIgnoreProperties.Value
        for name, left_out in LEFT_OUT.items():
            names = _array(gateway, jvm.java.lang.String, left_out)
            mapper.configOverride(jvm.java.lang.Class.forName(name)).setIgnorals(ignored.forIgnoredProperties(names))
        failed = jvm.java.util.ArrayList()
        failed.add(getattr(jvm.org.apache.spark.status.api.v1.TaskStatus, FAILED))
        none, quantiles = gateway.new_array(jvm.double, 0), _array(gateway, jvm.double, QUANTILES)
        _tools = Tools(gateway, mapper, jvm.java.util.ArrayList(), failed, none, quantiles)
        never_free(list(_tools[1:]))
    return _tools


def _array(gateway: Any, kind: Any, values: Sequence[Any]) -> Any:
    array = gateway.new_array(kind, len(values))
    for place, value in enumerate(values):
        array[place] = value
    return array


def _execution(data: Mapping[str, Any]) -> SqlExecution:
    started, ended = data["submissionTime"] / 1000, rest_instant(data.get("completionTime"))
    return SqlExecution(
        number=int(data["executionId"]), description=str(data.get("description", "")),
        jobs=tuple(int(job) for job, status in data["jobs"].items() if status in JOB_HAS_ENDED),
        is_running=ended is None, started=started, seconds=round(ended - started, 3) if ended is not None else 0.0,
        error=data.get("errorMessage") or None,
    )  # fmt: skip
