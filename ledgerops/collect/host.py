"""The driver's machine and processes (psutil), and the application's executors (Spark's REST)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import orjson
import psutil

from ledgerops.collect.inbox import Inbox
from ledgerops.collect.rest import SparkRest
from ledgerops.records import Executor, Host, Process

WORKERS = ("pyspark.daemon", "pyspark.worker", "pyspark/daemon.py", "pyspark/worker.py")


class HostCollector:
    """`folder` is the one whose disk is reported, `rest` gives Spark's interface, or None while it is unknown."""

    def __init__(self, inbox: Inbox, folder: Path | None, rest: Callable[[], SparkRest | None]) -> None:
        self._inbox, self._folder, self._rest = inbox, folder, rest
        self._cpu_seconds: dict[str, float] = {}  # by role, the most that was seen
        psutil.cpu_percent()  # the first call only starts the measurement

    def look(self) -> None:
        """Raises what the REST interface raises, after the rest was reported."""
        executors: list[Executor] = []
        problem: Exception | None = None
        rest = self._rest()
        if rest is not None:
            try:
                executors = [parse_executor(each) for each in rest.get("/executors")]
            except (OSError, ValueError, KeyError, TypeError) as error:
                problem = error
        memory = psutil.virtual_memory()
        disk = self._disk()
        seen = Host(
            at=time.time(),
            cpu_count=psutil.cpu_count() or 1,
            cpu_busy_ratio=psutil.cpu_percent() / 100,
            memory_total_bytes=memory.total,
            memory_available_bytes=memory.available,
            disk_total_bytes=disk[0] if disk else None,
            disk_free_bytes=disk[1] if disk else None,
            processes=tuple(self._never_falling(each) for each in _measure()),
            executors=tuple(executors),
        )
        self._inbox.put("host", orjson.dumps(seen))
        if problem is not None:
            raise problem

    def _never_falling(self, process: Process) -> Process:
        """Processor time is exported as a counter: what a process that is gone has used stays counted."""
        most = max(process.cpu_seconds, self._cpu_seconds.get(process.role, 0.0))
        self._cpu_seconds[process.role] = most
        return replace(process, cpu_seconds=most)

    def _disk(self) -> tuple[int, int] | None:
        folder = self._folder
        while folder is not None and not folder.exists() and folder != folder.parent:
            folder = folder.parent  # the recording may not have begun
        if folder is None:
            return None
        try:
            usage = psutil.disk_usage(str(folder))
        except OSError:
            return None
        return usage.total, usage.free


def _measure() -> Iterable[Process]:
    """Python starts the JVM, or spark-submit's JVM starts Python; the workers are the JVM's children either way."""
    me = psutil.Process()
    yield from _summed("driver_python", [me])
    family = [*me.children(recursive=True), *me.parents()]
    machine = next((process for process in family if _name(process).startswith("java")), None)
    if machine is not None:
        yield from _summed("driver_jvm", [machine])
        try:
            workers = [process for process in machine.children(recursive=True) if _is_worker(process)]
        except psutil.Error:
            workers = []
        yield from _summed("python_workers", workers)


def _summed(
    role: Literal["driver_python", "driver_jvm", "python_workers"], processes: Iterable[psutil.Process]
) -> Iterable[Process]:
    """One record for all of them; none when there are none. Processes come and go while they are looked at."""
    cpu, memory, threads, files, count = 0.0, 0, 0, 0, 0
    for process in processes:
        try:
            with process.oneshot():
                times = process.cpu_times()
                cpu += times.user + times.system
                if role == "python_workers":  # those that have ended: Spark's Python daemon has reaped them
                    cpu += times.children_user + times.children_system
                memory += process.memory_info().rss
                threads += process.num_threads()
                files += process.num_fds() if os.name == "posix" else 0
                count += 1
        except psutil.Error:
            continue
    if count:
        yield Process(role, cpu, memory, threads, files if os.name == "posix" else None, count)


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return ""


def _is_worker(process: psutil.Process) -> bool:
    try:
        return any(word in part for part in process.cmdline() for word in WORKERS)
    except psutil.Error:
        return False


def parse_executor(data: Mapping[str, Any]) -> Executor:
    """One entry of `/executors`. In local mode the driver is the only executor, else it runs no tasks."""
    peak = data.get("peakMemoryMetrics") or {}
    return Executor(
        executor_id=str(data["id"]),
        active=bool(data["isActive"]),
        cores=int(data["totalCores"]),
        active_tasks=int(data["activeTasks"]),
        failed_tasks=int(data["failedTasks"]),
        completed_tasks=int(data["completedTasks"]),
        run_seconds=data["totalDuration"] / 1000,
        gc_seconds=data["totalGCTime"] / 1000,
        memory_used_bytes=int(data["memoryUsed"]),
        memory_max_bytes=int(data["maxMemory"]),
        heap_peak_bytes=peak.get("JVMHeapMemory") or None,
        shuffle_read_bytes=int(data["totalShuffleRead"]),
        shuffle_write_bytes=int(data["totalShuffleWrite"]),
    )
