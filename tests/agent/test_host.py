import subprocess
import sys
import threading
from collections import namedtuple
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import orjson
import psutil
import pytest

from ledgerops.agent.control_group import CpuLimit, MemoryLimit
from ledgerops.agent.host import (
    CpuTotal,
    HostCollector,
    _is_worker,
    _totals,
    _trees,
    cpu_pressure_ratio,
    removed_executors,
    runnable_threads,
)
from ledgerops.model.observations import build
from ledgerops.model.records import Host
from tests.agent.fakes import queue, taken
from tests.build import T0
from tests.tables import cases

EXECUTOR = {
    "id": "driver", "isActive": True, "totalCores": 2, "activeTasks": 1, "failedTasks": 0, "completedTasks": 90,
    "totalDuration": 18571, "totalGCTime": 378, "memoryUsed": 3119898, "maxMemory": 455501414,
    "totalShuffleRead": 5402, "totalShuffleWrite": 5402, "peakMemoryMetrics": {"JVMHeapMemory": 213361168},
}  # fmt: skip


class Rest:
    def __init__(self, *executors, error=None):
        self.found, self.error = list(executors), error

    def executors(self):
        if self.error is not None:
            raise self.error
        return self.found


def collected(folder=None, status=lambda: None, raises=None):
    """The one observation that is queued, though asking Spark may raise this."""
    box = queue()
    with pytest.raises(raises[0], match=raises[1]) if raises else nullcontext():
        HostCollector(box, folder, status).collect()
    [(kind, data)] = taken(box)
    assert kind == "host"
    return data


def host_of(*executors, folder=None):
    """The record of a driver whose application has these executors."""
    return build(Host, orjson.loads(orjson.dumps(collected(folder, lambda: Rest(*executors)))), at=T0)


def test_the_machine_this_process_and_the_executors_are_reported(tmp_path):
    host = host_of(EXECUTOR, folder=tmp_path / "not yet there")
    [executor] = host.executors
    assert (executor.run_seconds, executor.gc_seconds, executor.heap_peak_bytes) == (18.571, 0.378, 213361168)
    assert host.processes[0].role == "driver_python" and host.processes[0].memory_bytes > 1_000_000
    assert 0 < host.memory_available_bytes < host.memory_total_bytes
    assert host.disk_free_bytes is not None and host.disk_free_bytes <= host.disk_total_bytes


def test_in_a_container_its_limits_are_reported_and_no_more_memory_than_it_may_use(monkeypatch):
    monkeypatch.setattr("ledgerops.agent.host.memory_limit", lambda: MemoryLimit(3_000_000, 1_000_000))
    monkeypatch.setattr("ledgerops.agent.host.cpu_limit", lambda: CpuLimit(0.5, 12.5))
    data = collected()
    assert (data["memory_total_bytes"], data["memory_available_bytes"]) == (3_000_000, 1_000_000)
    assert (data["cpu_limit_cores"], data["cpu_held_back_seconds"]) == (0.5, 12.5)


def refuses():
    raise RuntimeError("spark.app.id is hidden")


@cases(
    "folder, status, raises",
    ("there is none", None, lambda: None, None),
    ("it is away", None, lambda: Rest(error=OSError("away")), (OSError, "away")),
    ("whatever Spark raises", None, refuses, (RuntimeError, "hidden")),
    ("a folder whose name is too long hides its disk only", Path("x" * 5000), lambda: None, None),
)
def test_without_a_user_interface_the_machine_is_reported_all_the_same(folder, status, raises):
    data = collected(folder, status, raises)
    assert (data["executors"], data["disk_total_bytes"], data["memory_total_bytes"] > 0) == ([], None, True)


def test_while_spark_hangs_the_machine_is_reported_all_the_same(monkeypatch):
    monkeypatch.setattr("ledgerops.agent.host.ANSWER_SECONDS", 0.01)
    box, answer = queue(), threading.Event()
    collector = HostCollector(box, None, lambda: answer.wait(60))
    for _ in range(2):
        with pytest.raises(TimeoutError):
            collector.collect()
    answer.set()
    collector.close()

    assert [data["executors"] for _, data in taken(box)] == [[], []]


def test_how_busy_the_cpus_were_is_measured_from_the_beginning_whichever_thread_looks(monkeypatch):
    times = namedtuple("times", "user system idle iowait steal guest")
    looks = iter([times(10, 0, 50, 0, 0, 10), times(13, 1, 55, 0, 1, 13)])
    monkeypatch.setattr("ledgerops.agent.host.psutil.cpu_times", lambda: next(looks))
    box = queue()
    collector = HostCollector(box, None, lambda: None)
    looking = threading.Thread(target=collector.collect)
    looking.start()
    looking.join()

    [(_, data)] = taken(box)
    assert (data["cpu_busy_ratio"], data["cpu_steal_ratio"]) == (0.5, 0.1)


class FakeProcess:
    """One that has used `own` seconds, and whose ended children have used `children`."""

    def __init__(self, own, children):
        times = SimpleNamespace(user=own, system=0.5, children_user=children, children_system=0.25)
        self.oneshot, self.cpu_times = nullcontext, lambda: times
        self.memory_info = lambda: SimpleNamespace(rss=1000)
        self.num_threads, self.num_fds = lambda: 1, lambda: 3


@pytest.mark.parametrize(("role", "seconds"), [("python_workers", 12.5), ("driver_python", 3.0)])
def test_python_workers_that_have_ended_stay_counted_by_their_daemon(role, seconds):
    [found] = _totals(role, {"tree": [FakeProcess(1.0, 9.0), FakeProcess(1.0, 0.0)]}, CpuTotal())
    assert found.cpu_seconds == seconds


def test_what_a_process_has_used_stays_counted_when_it_is_gone_and_another_comes():
    cpu_total = CpuTotal()
    looks = [{"a": 50.0}, {"a": 51.0, "b": 1.0}, {"b": 1.5}, {"b": 1.0}, {}, {"c": 0.5}, {"c": 2.0}]
    assert [cpu_total.update(trees) for trees in looks] == [50.0, 52.0, 52.5, 52.5, 52.5, 53.0, 54.5]
    assert len(cpu_total._running) == 1, "nothing is left behind of the others"


WAITS = "import sys; print(flush=True); sys.stdin.read()"


def started(*args, **options):
    """A Python that has begun, and waits until its input ends."""
    process = subprocess.Popen([sys.executable, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
    assert process.stdout.readline()
    return process


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A pyspark whose programs wait: what counts is how they are called."""
    for name in ("pyspark", "pyspark/sql", "pyspark/sql/streaming"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    for name in ("pyspark/daemon.py", "pyspark/sql/streaming/python_streaming_source_runner.py", "app.py"):
        (tmp_path / name).write_text(WAITS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


@cases(
    "args, worker",
    ("the daemon of tasks", ["-m", "pyspark.daemon", "pyspark.worker"], True),
    ("a planner", ["-m", "pyspark.daemon", "pyspark.sql.worker.plan_data_source_read"], True),
    ("a source of a query", ["-m", "pyspark.sql.streaming.python_streaming_source_runner"], True),
    ("the application", ["app.py"], False),
    ("another Python", ["-c", WAITS], False),
)
def test_sparks_python_processes_are_known(package, args, worker):
    process = started(*args, cwd=package)
    try:
        assert _is_worker(psutil.Process(process.pid)) == worker
    finally:
        process.communicate()


def test_a_daemon_and_its_children_are_one_tree_and_a_source_is_its_own(package):
    (package / "pyspark" / "daemon.py").write_text(f"import os; os.fork(); {WAITS}")
    daemon = started("-m", "pyspark.daemon")
    source = started("-m", "pyspark.sql.streaming.python_streaming_source_runner")
    try:
        processes = [psutil.Process(each.pid) for each in (source, daemon)]
        found = _trees([*processes, *processes[1].children()])

        assert {root.pid: len(members) for root, members in found.items()} == {source.pid: 1, daemon.pid: 2}
    finally:
        for process in (daemon, source):
            process.communicate()


LOST = {
    "id": "3",
    "isActive": False,
    "removeTime": "2026-01-31T12:05:00.000GMT",
    "hostPort": "10.0.0.12:34567",
    "removeReason": "worker lost: 10.0.0.12:7078 of 10.0.0.1:7077, code 137",
    "totalCores": 4,
    "failedTasks": 2,
    "completedTasks": 80,
}


def test_an_executor_that_is_gone_is_reported_apart_with_its_machine_and_no_other_address():
    two_cores_a_task = {"totalCores": 4, "maxTasks": 2}
    host = host_of({**EXECUTOR, **two_cores_a_task}, LOST)

    [removed] = host.removed_executors
    assert [(each.executor_id, each.cores) for each in host.executors] == [("driver", 2)]
    assert (removed.executor_id, removed.cores, removed.removed_at) == ("3", 4, 1_769_861_100.0)
    assert removed.reason == "worker lost: 10.0.0.12:7078 of <masked>:<masked>, code 137"
    assert removed.host == "10.0.0.12"


def test_the_reason_of_an_executor_on_kubernetes_has_the_end_of_its_container():
    told = (
        "\nThe executor with id 3 exited with exit code 137(SIGKILL, possible container OOM).\n\n\n\nThe API gave the "
        "following container statuses:\n\n\n\t container name: spark-kubernetes-executor\n\t container image: "
        "apache/spark:4.2.0\n\t container state: terminated\n\t container started at: 2026-01-31T12:00:00Z\n\t "
        "container finished at: 2026-01-31T12:05:00Z\n\t exit code: 137\n\t termination reason: OOMKilled\n"
    )
    [removed] = removed_executors([{**LOST, "removeReason": told}])
    assert removed.reason.endswith("OOMKilled\n")


def test_of_executors_that_come_and_go_all_day_only_the_newest_are_kept():
    gone = [{**LOST, "id": str(n), "removeTime": f"2026-01-31T12:{n % 60:02}:00.000GMT"} for n in range(60)]
    assert [each.executor_id for each in removed_executors(reversed(gone))] == [str(n) for n in range(40, 60)]


@pytest.mark.parametrize("port", [None, 7, "", "no port", ":7078"])
def test_an_executor_whose_machine_is_not_known_has_no_address(port):
    [removed] = removed_executors([{**LOST, "hostPort": port}])
    assert removed.host is None
    assert removed.reason == "worker lost: <masked>:<masked> of <masked>:<masked>, code 137"


def test_a_recording_of_an_earlier_version_has_no_pressure_and_no_removed_executors():
    added = ("removed_executors", "cpu_pressure_ratio", "cpu_steal_ratio", "runnable_threads", "cpu_limit_cores")
    host = build(Host, {key: value for key, value in collected().items() if key not in added}, at=T0)
    assert [getattr(host, name) for name in added] == [(), None, None, None, None]


PRESSURE = "some avg10=75.00 avg60=36.52 avg300=11.13 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


@cases(
    "read, text, found",
    ("pressure on the CPUs", cpu_pressure_ratio, PRESSURE, 0.75),
    ("no pressure in the file", cpu_pressure_ratio, "nothing of the kind", None),
    ("no file of pressure", cpu_pressure_ratio, None, None),
    ("threads that want a CPU", runnable_threads, "2.26 0.98 0.69 10/454 23883\n", 10),
    ("no file of threads", runnable_threads, None, None),
)
def test_what_the_kernel_tells_of_the_cpus(tmp_path, read, text, found):
    if text is not None:
        (tmp_path / "file").write_text(text)
    assert read(tmp_path / "file") == found
