"""The driver's machine and processes (psutil, /proc), and the application's executors (Spark)."""

import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import orjson
import psutil

from ledgerops.agent.control_group import cpu_limit, memory_limit
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.spark_status import SparkStatus, rest_instant
from ledgerops.common.deadline import OneAtATime
from ledgerops.common.masking import mask
from ledgerops.model.records import Executor, Host, Process, RemovedExecutor

# daemons, the processes of data sources, and those of Spark Connect's queries
WORKERS = ("pyspark.daemon", "pyspark.worker", "pyspark/daemon.py", "pyspark/worker.py", "pyspark.sql.")
ANSWER_SECONDS = 5.0  # for Spark's answer
MAX_REMOVED_EXECUTORS = 20  # Spark keeps 100; with dynamic allocation they come and go all day
MAX_REASON_LENGTH = 600  # characters: on Kubernetes the end of its container comes after 380
MAX_HOST_LENGTH = 253  # characters that a name may have in DNS
PRESSURE = re.compile(r"^some avg10=([\d.]+)", re.MULTILINE)
Role = Literal["driver_python", "driver_jvm", "python_workers"]
Answer = TypeVar("Answer")
Trees = Mapping[Hashable, Sequence[psutil.Process]]  # by their roots


class HostCollector:
    """Reports the disk of `folder`. `status` returns what Spark knows, or None while it cannot be asked."""

    def __init__(self, queue: EventQueue, folder: Path | None, status: Callable[[], SparkStatus | None]) -> None:
        self._queue, self._folder, self._status = queue, folder, status
        self._questions = OneAtATime("ledgerops-executors")
        self._cpu_totals: dict[Role, CpuTotal] = defaultdict(CpuTotal)
        self._cpu_times = psutil.cpu_times()

    def collect(self) -> None:
        """Queues one `host` record. Raises what Spark raised, after everything else was reported."""
        executors: list[Executor] = []
        removed: tuple[RemovedExecutor, ...] = ()
        problem: Exception | None = None
        try:
            found = self._questions.within(
                lambda: () if (spark := self._status()) is None else spark.executors(), ANSWER_SECONDS
            )
            executors = [parse_executor(each) for each in found if each["isActive"]]
            removed = removed_executors(found)
        except Exception as error:  # whatever Spark answers, and if it hangs, the machine is still there
            problem = error
        busy, stolen = self._cpu_shares()
        memory, allowed, cpu = psutil.virtual_memory(), memory_limit(), cpu_limit()
        disk = self._disk()
        seen = Host(
            at=time.time(), cpu_count=psutil.cpu_count() or 1, cpu_busy_ratio=busy,
            memory_total_bytes=min(memory.total, allowed.total) if allowed else memory.total,
            memory_available_bytes=min(memory.available, allowed.available) if allowed else memory.available,
            disk_total_bytes=disk[0] if disk else None, disk_free_bytes=disk[1] if disk else None,
            processes=tuple(
                process for role, trees in _application() for process in _totals(role, trees, self._cpu_totals[role])
            ),
            executors=tuple(executors), removed_executors=removed, cpu_pressure_ratio=cpu_pressure_ratio(),
            cpu_steal_ratio=stolen, runnable_threads=runnable_threads(), cpu_limit_cores=cpu.cores if cpu else None,
            cpu_held_back_seconds=cpu.held_back_seconds if cpu else None,
        )  # fmt: skip
        self._queue.put("host", orjson.dumps(seen))
        if problem is not None:
            raise problem

    def close(self) -> None:
        """Asks Spark nothing any more."""
        self._questions.close()

    def _cpu_shares(self) -> tuple[float, float | None]:
        """Shares of the CPU time since the last call: busy, and given to others by the hypervisor, where it is counted.
        psutil's own `cpu_percent` measures since the last call of the same thread."""
        earlier, self._cpu_times = self._cpu_times._asdict(), psutil.cpu_times()
        spent = {name: max(0.0, now - earlier[name]) for name, now in self._cpu_times._asdict().items()}
        total = sum(seconds for name, seconds in spent.items() if not name.startswith("guest"))  # these are in `user`
        if total <= 0:
            return 0.0, None
        idle = spent["idle"] + spent.get("iowait", 0.0)
        return 1 - idle / total, spent["steal"] / total if "steal" in spent else None

    def _disk(self) -> tuple[int, int] | None:
        folder = self._folder
        if folder is None:
            return None
        try:
            while not folder.exists() and folder != folder.parent:
                folder = folder.parent  # the recording may not have begun
            usage = psutil.disk_usage(str(folder))
        except OSError:  # also of a name that is too long
            return None
        return usage.total, usage.free


class CpuTotal:
    """CPU seconds of all processes of one role. It is exported as a counter, so those that have ended stay counted. The
    seconds are kept by process tree: those of a child that has ended are added to its parent's."""

    def __init__(self) -> None:
        self._running: dict[Hashable, float] = {}
        self._ended = 0.0

    def update(self, trees: Mapping[Hashable, float]) -> float:
        """The total, given what each running tree has used so far."""
        self._ended += sum(self._running.pop(tree) for tree in self._running.keys() - trees.keys())
        self._running = {tree: max(seconds, self._running.get(tree, 0.0)) for tree, seconds in trees.items()}
        return self._ended + sum(self._running.values())


def _application() -> Iterator[tuple[Role, Trees]]:
    """The application's processes by role. Python starts the JVM, or spark-submit's JVM starts Python; the workers are
    the JVM's children either way. All processes of the machine are read to find a process's children, so that is done
    once where it suffices."""
    me = psutil.Process()
    yield "driver_python", {me: [me]}
    below = me.children(recursive=True)
    jvm = next(filter(_is_java, below), None) or next(filter(_is_java, me.parents()), None)
    if jvm is not None:
        yield "driver_jvm", {jvm: [jvm]}
        family = below if jvm in below else _asked(partial(jvm.children, recursive=True), list[psutil.Process]())
        workers = [process for process in family if _is_worker(process)]
        yield "python_workers", _trees(workers)


def _trees(processes: Iterable[psutil.Process]) -> Trees:
    """The processes, by the one among them that the others descend from."""
    ids = {process.pid: process for process in processes}
    trees: dict[Hashable, list[psutil.Process]] = {}
    for process in ids.values():
        root = process
        try:
            while (parent := root.ppid()) in ids:
                root = ids[parent]
        except psutil.Error:
            continue
        trees.setdefault(root, []).append(process)
    return trees


def _totals(role: Role, trees: Trees, cpu_total: CpuTotal) -> Iterator[Process]:
    """One record for all processes of a role; none without any. They come and go while they are sampled."""
    cpu, memory, threads, files, count = dict[Hashable, float](), 0, 0, 0, 0
    for root, process in ((root, process) for root, processes in trees.items() for process in processes):
        try:
            with process.oneshot():
                times = process.cpu_times()
                used = times.user + times.system
                if role == "python_workers":  # those that have ended: Spark's Python daemon has reaped them
                    used += times.children_user + times.children_system
                cpu[root] = cpu.get(root, 0.0) + used
                memory += process.memory_info().rss
                threads += process.num_threads()
                files += process.num_fds() if os.name == "posix" else 0
                count += 1
        except psutil.Error:
            continue
    total = cpu_total.update(cpu)
    if count:
        yield Process(role, total, memory, threads, files if os.name == "posix" else None, count)


def _asked(question: Callable[[], Answer], otherwise: Answer) -> Answer:
    """What psutil says of a process, which may have ended."""
    try:
        return question()
    except psutil.Error:
        return otherwise


def _is_java(process: psutil.Process) -> bool:
    return _asked(process.name, "").startswith("java")


def _is_worker(process: psutil.Process) -> bool:
    return any(word in part for part in _asked(process.cmdline, list[str]()) for word in WORKERS)


def cpu_pressure_ratio(file: Path = Path("/proc/pressure/cpu")) -> float | None:
    """Share of the last 10 seconds in which at least one task waited for a CPU (0 to 1); None where PSI is off."""
    try:
        found = PRESSURE.search(file.read_text("ascii"))
    except (OSError, ValueError):
        return None
    return min(1.0, float(found[1]) / 100) if found else None


def runnable_threads(file: Path = Path("/proc/loadavg")) -> int | None:
    """Threads of the machine that run or wait for a CPU now, this one included; None where it is not known."""
    try:
        return int(file.read_text("ascii").split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return None


def removed_executors(data: Iterable[Mapping[str, Any]]) -> tuple[RemovedExecutor, ...]:
    """The newest MAX_REMOVED_EXECUTORS of `/allexecutors` that are gone, oldest first."""
    removed = [
        RemovedExecutor(
            executor_id=str(each["id"]), removed_at=removed_at,
            reason=removal_reason(each.get("removeReason"), host := _host_name(each.get("hostPort"))), host=host,
            cores=int(each.get("totalCores", 0)), failed_tasks=int(each.get("failedTasks", 0)),
            completed_tasks=int(each.get("completedTasks", 0)),
        )
        for each in data
        if not each["isActive"] and (removed_at := rest_instant(each.get("removeTime"))) is not None
    ]  # fmt: skip
    return tuple(sorted(removed, key=lambda each: each.removed_at)[-MAX_REMOVED_EXECUTORS:])


def removal_reason(reason: object, host: str | None) -> str | None:
    """The reason that Spark reports, masked except for the executor's own machine; None without one."""
    return mask(reason, host)[:MAX_REASON_LENGTH] if isinstance(reason, str) and reason else None


def _host_name(host_port: object) -> str | None:
    """The host of `host:port`."""
    host = host_port.rpartition(":")[0][:MAX_HOST_LENGTH] if isinstance(host_port, str) else ""
    return host or None


def parse_executor(data: Mapping[str, Any]) -> Executor:
    """One entry of `/allexecutors`. In local mode the driver is the only executor, else it runs no tasks."""
    peak = data.get("peakMemoryMetrics") or {}
    return Executor(
        executor_id=str(data["id"]), active=bool(data["isActive"]),
        cores=int(data.get("maxTasks", data["totalCores"])),  # fewer where a task reserves several (spark.task.cpus)
        active_tasks=int(data["activeTasks"]), failed_tasks=int(data["failedTasks"]),
        completed_tasks=int(data["completedTasks"]), run_seconds=data["totalDuration"] / 1000,
        gc_seconds=data["totalGCTime"] / 1000, memory_used_bytes=int(data["memoryUsed"]),
        memory_max_bytes=int(data["maxMemory"]), heap_peak_bytes=peak.get("JVMHeapMemory") or None,
        shuffle_read_bytes=int(data["totalShuffleRead"]), shuffle_write_bytes=int(data["totalShuffleWrite"]),
    )  # fmt: skip
