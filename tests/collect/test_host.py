from contextlib import nullcontext
from types import SimpleNamespace

import orjson
import pytest

from ledgerops.collect import host as host_module
from ledgerops.collect.host import HostCollector, _summed
from ledgerops.decode import decode_host
from ledgerops.records import Process
from tests.build import T0
from tests.collect.fakes import inbox, taken

EXECUTOR = {
    "id": "driver",
    "isActive": True,
    "totalCores": 2,
    "activeTasks": 1,
    "failedTasks": 0,
    "completedTasks": 90,
    "totalDuration": 18571,
    "totalGCTime": 378,
    "memoryUsed": 3119898,
    "maxMemory": 455501414,
    "totalShuffleRead": 5402,
    "totalShuffleWrite": 5402,
    "peakMemoryMetrics": {"JVMHeapMemory": 213361168},
}


class Rest:
    def __init__(self, answer):
        self.answer = answer

    def get(self, path):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_machine_this_process_and_the_executors_are_reported(tmp_path):
    box = inbox()
    HostCollector(box, tmp_path / "not yet there", lambda: Rest([EXECUTOR])).look()

    [(kind, data)] = taken(box)
    host = decode_host(orjson.loads(orjson.dumps(data)), T0)
    [executor] = host.executors
    assert kind == "host"
    assert (executor.run_seconds, executor.gc_seconds, executor.heap_peak_bytes) == (18.571, 0.378, 213361168)
    assert host.processes[0].role == "driver_python" and host.processes[0].memory_bytes > 1_000_000
    assert 0 < host.memory_available_bytes < host.memory_total_bytes
    assert host.disk_free_bytes is not None and host.disk_free_bytes <= host.disk_total_bytes


def test_with_the_interface_away_the_machine_is_reported_all_the_same():
    box = inbox()
    with pytest.raises(OSError, match="away"):
        HostCollector(box, None, lambda: Rest(OSError("away"))).look()

    [(_, data)] = taken(box)
    assert data["executors"] == [] and data["disk_total_bytes"] is None


def test_without_a_user_interface_there_are_no_executors():
    box = inbox()
    HostCollector(box, None, lambda: None).look()

    assert taken(box)[0][1]["executors"] == []


class FakeProcess:
    """One that has used `own` seconds, and whose ended children have used `children`."""

    def __init__(self, own, children):
        self.times = SimpleNamespace(user=own, system=0.5, children_user=children, children_system=0.25)

    def oneshot(self):
        return nullcontext()

    def cpu_times(self):
        return self.times

    def memory_info(self):
        return SimpleNamespace(rss=1000)

    def num_threads(self):
        return 1

    def num_fds(self):
        return 3


@pytest.mark.parametrize(("role", "seconds"), [("python_workers", 12.5), ("driver_python", 3.0)])
def test_python_workers_that_have_ended_stay_counted_by_their_daemon(role, seconds):
    [found] = _summed(role, [FakeProcess(1.0, 9.0), FakeProcess(1.0, 0.0)])

    assert found.cpu_seconds == seconds


def test_processor_time_never_falls_and_each_role_has_its_own(monkeypatch):
    box = inbox()
    collector = HostCollector(box, None, lambda: None)
    found = []
    for workers, driver in [(50.0, 1.0), (8.0, 2.0), (51.0, 3.0)]:
        measured = [Process("python_workers", workers, 1, 1, 1, 1), Process("driver_jvm", driver, 1, 1, 1, 1)]
        monkeypatch.setattr(host_module, "_measure", lambda measured=measured: measured)
        collector.look()
        found += [[process["cpu_seconds"] for process in data["processes"]] for _, data in taken(box)]

    assert found == [[50.0, 1.0], [50.0, 2.0], [51.0, 3.0]]
