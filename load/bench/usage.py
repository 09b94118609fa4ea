"""What a measured run used: CPU seconds of the driver's process tree, JVM and Python workers apart, and memory."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

MIB = 2**20
# The JVM's threads that call an observer or answer it: Spark's listener bus, py4j, and its REST API on Spark Connect.
SERVING = ("spark-listener-", "Thread-", "SparkUI-")


class Cpu(NamedTuple):
    """Seconds of CPU, of user and system."""

    driver: float  # this Python process: the job's driver, and ledgerops in it
    jvm: float
    workers: float  # Python processes that the JVM started

    @property
    def total(self) -> float:
        """CPU seconds of all processes."""
        return sum(self)


class Meter:
    """CPU that this process and `java`, or else the JVM of Spark below it, use from now on.

    Workers are measured one by one. Of one that ends before `used()` the JVM keeps the time, if it is the JVM's own
    child: such is the process of an embedded source, which ends with its query, some moments before or after it, and
    has used more than a second for its imports. A child of pyspark's daemon, which ignores SIGCHLD, is not counted
    then: Spark ends one that was idle for a minute.
    """

    def __init__(self, java: psutil.Process | None = None) -> None:
        self._java = java
        self._began, self._served = self._look(), _serving_threads()

    def used(self) -> Cpu:
        """CPU seconds since the meter was created."""
        now, began = self._look(), self._began
        spent = sum(seconds - began.workers.get(worker, 0.0) for worker, seconds in now.workers.items())
        before = sum(began.workers[worker] for worker in began.children - now.workers.keys())
        return Cpu(now.driver - began.driver, now.jvm - began.jvm, spent + now.ended - began.ended - before)

    def serving(self) -> float:
        """CPU seconds of this process and of the JVM's threads that serve it, since the meter was created.

        An observer works in these; what Spark's garbage collector and JIT do for it is not in them. 0 for the JVM
        where the system does not count by thread.
        """
        threads = (seconds - self._served.get(thread, 0.0) for thread, seconds in _serving_threads().items())
        return self.used().driver + sum(threads)

    def _look(self) -> _Spent:
        java = self._java or spark_jvm()
        if java is None:
            return _Spent(cpu_seconds(psutil.Process()), 0.0, {}, frozenset(), 0.0)
        while True:  # until none has ended meanwhile, which would be counted twice or not at all
            ended = _seconds_of_ended(java)
            children = frozenset(java.children())
            workers = {}
            for worker in java.children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    workers[worker] = cpu_seconds(worker)
            if _seconds_of_ended(java) == ended:
                return _Spent(
                    cpu_seconds(psutil.Process()), cpu_seconds(java), workers, children & workers.keys(), ended
                )


class _Spent(NamedTuple):
    """CPU seconds since each process began; `ended` is that of the JVM's children that have ended, all together."""

    driver: float
    jvm: float
    workers: dict[psutil.Process, float]
    children: frozenset[psutil.Process]  # those of the workers that the JVM itself started
    ended: float


def _serving_threads() -> dict[str, float]:
    """CPU seconds of each thread of SERVING, by its id: exact, where those of a process come in ticks of 10 ms."""
    java, found = spark_jvm(), {}
    for thread in Path(f"/proc/{java.pid}/task").glob("*") if java else ():
        with suppress(OSError, IndexError):
            if (thread / "comm").read_text("utf-8").startswith(SERVING):
                found[thread.name] = int((thread / "schedstat").read_text("utf-8").split()[0]) / 1e9
    return found


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


def _seconds_of_ended(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.children_user + times.children_system)


def cpu_seconds(process: psutil.Process) -> float:
    """Of user and system, since it began."""
    times = process.cpu_times()
    return float(times.user + times.system)
