import orjson
import pytest

from ledgerops.collect.host import HostCollector
from ledgerops.decode import decode_host
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
