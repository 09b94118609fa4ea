"""What is checked of a Spark master before a job starts, without one."""

import socket
import sys
import time
from types import SimpleNamespace

import pytest

from ledgerops.errors import UserError
from ledgerops.ledger.run import cluster, spark_session
from ledgerops.servers.process import free_port
from tests.refusals import refusal_of
from tests.tables import cases


@pytest.mark.parametrize("master", ["spark://a:7077", "k8s://https://a", "yarn"])
def test_masters_whose_tasks_may_run_elsewhere_are_checked(master):
    assert cluster.is_remote(master) is True


@pytest.mark.parametrize("master", [None, "local[2]", "local-cluster[2,1,1024]"])
def test_masters_whose_tasks_run_here_are_not_checked(master):
    assert cluster.is_remote(master) is False


def test_a_dead_master_is_one_line_at_once():
    port, began = free_port(), time.monotonic()
    with pytest.raises(UserError, match=rf"^cannot reach the Spark master spark://127\.0\.0\.1:{port} \(.*refused\)"):
        cluster.check_master(f"spark://127.0.0.1:{port}")
    assert time.monotonic() - began < 60, "Spark alone tries for a minute and then some"


def test_one_of_several_masters_is_enough():
    with socket.create_server(("127.0.0.1", 0)) as master:
        cluster.check_master(f"spark://127.0.0.1:{free_port()},127.0.0.1:{master.getsockname()[1]}")
        cluster.check_master(f"k8s://http://127.0.0.1:{master.getsockname()[1]}")


def test_an_address_without_a_host_is_named_and_yarn_finds_its_master_itself():
    for master in ("spark://:x", "spark://[::1", "k8s://https://[x"):
        assert f"not a Spark master: {master}" in refusal_of(cluster.check_master, master)
    cluster.check_master("yarn")


def test_properties_are_read_as_spark_submit_reads_them(tmp_path):
    file = tmp_path / "my.conf"
    file.write_text("# ours\nspark.executor.memory  4g\n\nspark.executor.cores=2\nspark.a.b = c d\n")
    found = {"spark.executor.memory": "4g", "spark.executor.cores": "2", "spark.a.b": "c d"}
    assert cluster.read_properties(file) == found


@pytest.mark.parametrize("line", ["executor.memory 4g", "spark.executor.memory", "= 4g"])
def test_a_line_that_is_no_property_is_named(tmp_path, line):
    file = tmp_path / "my.conf"
    file.write_text(f"spark.a b\n{line}\n")
    with pytest.raises(UserError, match=r"my\.conf:2: not a Spark property"):
        cluster.read_properties(file)


class Executors:
    """A context whose tasks give these answers; `{folder}` is written to by the tasks of `writes`."""

    defaultParallelism = 2  # noqa: N815

    def __init__(self, change=lambda answer: answer, error=None):
        self._change, self._error = change, error

    def parallelize(self, parts, tasks):
        self._parts = [iter([each]) for each in parts]
        return self

    def mapPartitions(self, look):
        self._look = look
        return self

    def collect(self):
        if self._error:
            raise self._error
        return [self._change(answer) for part in self._parts for answer in self._look(part)]


def checked(folder, error=None, **changes):
    session = SimpleNamespace(sparkContext=Executors(lambda answer: {**answer, **changes}, error))
    cluster.check_executors(session, folder, ("json",))


def test_executors_that_share_the_folder_pass_and_leave_nothing_there(tmp_path):
    checked(tmp_path)
    assert list(tmp_path.iterdir()) == []


@cases(
    "changes, told",
    ("another folder", {"file": "elsewhere"}, "so output and state would be lost; give --out"),
    (
        "a missing module",
        {"missing": ["pyarrow"], "python": "/opt/python"},
        "cannot import pyarrow with /opt/python; install",
    ),
)
def test_executors_that_cannot_do_the_work_are_refused(tmp_path, changes, told):
    assert told in refusal_of(checked, tmp_path, **changes)


def test_a_folder_that_executors_cannot_write_is_refused_with_the_reason(tmp_path):
    assert "with this driver (no such file or directory)" in refusal_of(checked, tmp_path / "absent")


@cases(
    "text, told",
    (
        "another version of Python",
        "Traceback (most recent call last):\n  File worker.py\npyspark.errors.exceptions.base.PySparkRuntimeError: "
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.4 than that in driver: 3.11.\n\tat x\n",
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.4 than that in driver: 3.11",
    ),
    (
        "no such Python",
        "An error occurred while calling collect\n: org.apache.spark.SparkException: Job aborted\n\tat org.x\n"
        'Caused by: java.io.IOException: Cannot run program "/opt/python": error=2, No such file or directory\n',
        'Cannot run program "/opt/python": error=2, No such file or directory',
    ),
)
def test_executors_without_the_right_python_are_one_line(tmp_path, text, told):
    assert refusal_of(checked, tmp_path, error=RuntimeError(text)) == (
        f"executors cannot run Python tasks: {told}; see --executor-python"
    )


@cases(
    "master, given, variable, used",
    ("PYSPARK_PYTHON stays with a master", "spark://a:1", None, "/opt/python", "/opt/python"),
    ("the option wins", "spark://a:1", "/my/python", "/opt/python", "/my/python"),
    ("else this interpreter", "spark://a:1", None, None, sys.executable),
    ("on this machine it is always this one", None, None, "/opt/python", sys.executable),
)
def test_which_python_executors_run(monkeypatch, tmp_path, master, given, variable, used):
    def stop_here(*args):
        raise UserError("far enough")

    monkeypatch.setattr(spark_session.cluster, "check_master", stop_here)
    monkeypatch.setattr(spark_session, "session_conf", stop_here)
    for name, value in (("SPARK_LOCAL_IP", "127.0.0.1"), ("JAVA_HOME", ""), ("PYSPARK_DRIVER_PYTHON", "")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYSPARK_PYTHON", variable or "")

    assert refusal_of(spark_session.open_session, master, 2, tmp_path, executor_python=given) == "far enough"
    assert spark_session.os.environ["PYSPARK_PYTHON"] == used


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("SPARK_HOME", "/nowhere", r".*No such file or directory: '/nowhere/.*spark-submit'"),
        ("PYSPARK_SUBMIT_ARGS", "'--conf", "No closing quotation; see .*spark.log"),
    ],
)
def test_a_spark_that_does_not_start_here_is_one_line(monkeypatch, tmp_path, variable, value, told):
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_gateway", None)  # as in a process without a session
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr("pyspark.sql.SparkSession._instantiatedSession", None)
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv(variable, value)

    with pytest.raises(UserError, match=f"cannot start Spark on this machine: {told}"):
        spark_session.open_session(None, 1, tmp_path, log=tmp_path / "spark.log")


def with_default_file_system(address):
    context = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: {"fs.defaultFS": address}))
    return SimpleNamespace(sparkContext=context)


@pytest.mark.parametrize("address", ["file:///", "file:/", None])
def test_output_goes_to_the_folder_where_paths_are_local(address, tmp_path):
    cluster.check_file_system(with_default_file_system(address), tmp_path)


@pytest.mark.parametrize("address", ["hdfs://namenode:8020", "s3a://bucket"])
def test_a_default_file_system_that_would_take_the_output_elsewhere_is_refused(address, tmp_path):
    assert refusal_of(cluster.check_file_system, with_default_file_system(address), tmp_path) == (
        f"Spark's default file system is {address}, so output and checkpoints would not be in {tmp_path}; add "
        "--conf spark.hadoop.fs.defaultFS=file:///"
    )
