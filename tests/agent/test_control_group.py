"""The limits of a container, as Linux writes them in control groups of version 1 and 2."""

import pytest

from ledgerops.agent.control_group import CpuLimit, MemoryLimit, cpu_limit, memory_limit
from tests.tables import cases

VERSION_2, VERSION_1 = "0::/\n", "4:memory:/docker/1f0\n3:cpu,cpuacct:/docker/1f0\n0::/\n"


@pytest.fixture
def limits(tmp_path):
    """Writes files by path, and the groups of this process; gives its limits of CPU and memory."""

    def read(own, files):
        for path, text in files.items():
            file = tmp_path / "cgroup" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        groups = tmp_path / "own"
        groups.write_text(own)
        return cpu_limit(tmp_path / "cgroup", groups), memory_limit(tmp_path / "cgroup", groups)

    return read


def test_a_container_of_version_2(limits):
    stat = "usage_usec 9\nnr_periods 826\nnr_throttled 824\nthrottled_usec 131063446\n"
    memory = {"memory.max": "2000\n", "memory.current": "1500\n", "memory.stat": "anon 900\ninactive_file 300\n"}
    found = limits(VERSION_2, {"cpu.max": "50000 100000\n", "cpu.stat": stat, **memory})
    assert found == (CpuLimit(0.5, pytest.approx(131.063446)), MemoryLimit(2000, 800))


def version_1(quota, limit, used):
    """The files of a container of version 1."""
    return {
        "cpu/cpu.cfs_quota_us": f"{quota}\n",
        "cpu/cpu.cfs_period_us": "100000\n",
        "cpu/cpu.stat": "nr_periods 826\nnr_throttled 824\nthrottled_time 2500000000\n",
        "memory/memory.limit_in_bytes": f"{limit}\n",
        "memory/memory.usage_in_bytes": f"{used}\n",
        "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 500\n",
    }


def test_a_container_of_version_1_sees_its_own_group_as_the_outermost(limits):
    assert limits(VERSION_1, version_1(150_000, 4000, 3000)) == (CpuLimit(1.5, 2.5), MemoryLimit(4000, 1500))


def test_of_a_group_within_others_the_tightest_limit_counts(limits):
    files = {
        "kubepods/pod7/driver/cpu.max": "max 100000\n",
        "kubepods/pod7/cpu.max": "100000 100000\n",
        "kubepods/cpu.max": "6400000 100000\n",
        "kubepods/pod7/driver/memory.max": "9000\n",
        "kubepods/pod7/driver/memory.current": "1000\n",
        "kubepods/pod7/memory.max": "9500\n",
        "kubepods/pod7/memory.current": "9000\n",
    }
    assert limits("0::/kubepods/pod7/driver\n", files) == (CpuLimit(1.0, 0.0), MemoryLimit(9500, 500))


def test_a_group_that_others_share_holds_back_as_well(limits):
    files = {
        "slice/driver/cpu.max": "150000 100000\n",
        "slice/driver/cpu.stat": "throttled_usec 0\n",
        "slice/cpu.max": "200000 100000\n",
        "slice/cpu.stat": "throttled_usec 500000000\n",
    }
    assert limits("0::/slice/driver\n", files)[0] == CpuLimit(1.5, 500.0)


@cases(
    "own, files",
    ("none", VERSION_2, {"cpu.max": "max 100000\n", "memory.max": "max\n", "memory.current": "5\n"}),
    ("none, version 1", VERSION_1, version_1(-1, 9223372036854771712, 5)),
    ("no control groups", "", {"cpu.max": "50000 100000\n"}),
    ("something else is written", VERSION_2, {"cpu.max": "many\n", "memory.max": "\n"}),
    ("a period of nothing", VERSION_2, {"cpu.max": "5 0\n"}),
    ("not a list of groups", "no colons\n", {}),
)
def test_there_is_no_limit(limits, own, files):
    assert limits(own, files) == (None, None)
