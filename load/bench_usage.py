"""What a measured run used: CPU seconds of the driver's process tree, JVM and Python workers apart, and memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import psutil

MIB = 2**20


class Cpu(NamedTuple):
    """Seconds of CPU, of user and system."""

    driver: float  # this Python process: the job's driver, and ledgerops in it
    jvm: float
    workers: float  # Python processes that the JVM started, those that have ended included

    def __sub__(self, earlier: Cpu) -> Cpu:
        return Cpu(*(now - before for now, before in zip(self, earlier, strict=True)))

    @property
    def total(self) -> float:
        return sum(self)


def cpu(root: psutil.Process | None = None) -> Cpu:
    """Of this process and the JVM below it, so far. What a process reaped is in its `children_*` times."""
    root = root or psutil.Process()
    own = root.cpu_times()
    jvm = workers = 0.0
    java = spark_jvm(root)
    if java is not None:
        times = java.cpu_times()
        jvm += times.user + times.system
        workers += times.children_user + times.children_system
        for worker in java.children(recursive=True):
            try:
                spent = worker.cpu_times()
            except psutil.NoSuchProcess:
                continue
            workers += spent.user + spent.system + spent.children_user + spent.children_system
    return Cpu(own.user + own.system, jvm, workers)


def spark_jvm(root: psutil.Process | None = None) -> psutil.Process | None:
    """The JVM that this process started; None before it did."""
    return next((child for child in (root or psutil.Process()).children() if _is_spark(child)), None)


def resident(process: psutil.Process | None = None) -> float:
    """MiB of one process in memory."""
    return float((process or psutil.Process()).memory_info().rss) / MIB


def heap(spark: Any) -> float:
    """MiB that live objects take in the JVM, after a full collection."""
    spark._jvm.java.lang.System.gc()
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / MIB


def _is_spark(process: psutil.Process) -> bool:
    """Not any JVM: a broker may be a child of this process, too."""
    try:
        return any("org.apache.spark" in word for word in process.cmdline())
    except psutil.NoSuchProcess:
        return False
