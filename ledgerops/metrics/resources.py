"""Executors (from Spark's REST) and the driver's machine and processes (psutil)."""

from __future__ import annotations

from collections.abc import Callable

from ledgerops.metrics.model import Labels, Metric, Series
from ledgerops.model.records import Executor, Host, Process

Read = Callable[[Host], Series]


def _executors(value: Callable[[Executor], float | None]) -> Read:
    def read(host: Host) -> Series:
        return {(each.executor_id,): float(x) for each in host.executors if (x := value(each)) is not None}

    return read


def _processes(value: Callable[[Process], float | None]) -> Read:
    def read(host: Host) -> Series:
        return {(each.role,): float(x) for each in host.processes if (x := value(each)) is not None}

    return read


def _host(value: Callable[[Host], float | None]) -> Read:
    def read(host: Host) -> Series:
        x = value(host)
        return {} if x is None else {(): float(x)}

    return read


def _gauge(name: str, text: str, read: Read, *labels: str, unused: str = "") -> Metric[Host]:
    return Metric(name, "gauge", text, labels=labels, read=read, unused=unused)


def _counter(name: str, text: str, read: Read, *labels: str) -> Metric[Host]:
    return Metric(name, "counter", text, labels=labels, read=read)


def _active(host: Host) -> Series:
    found: dict[Labels, float] = {(each.executor_id,): 0.0 for each in host.removed_executors}
    found.update({(each.executor_id,): float(each.active) for each in host.executors})
    return found


def _removed_info(host: Host) -> Series:
    return {(each.executor_id, each.reason or "unknown"): 1.0 for each in host.removed_executors}


def _removed_at(host: Host) -> Series:
    return {(each.executor_id,): each.removed_at for each in host.removed_executors}


METRICS: tuple[Metric[Host], ...] = (
    _gauge(
        "ledgerops_executor_active",
        "1 for each executor that is alive, 0 for one that was lost or released.",
        _active,
        "executor",
    ),
    Metric(
        "ledgerops_executor_removed_info",
        "info",
        "Why Spark removed an executor; only the newest removed executors are kept.",
        labels=("executor", "reason"),
        read=_removed_info,
        unused="The reason is read beside ledgerops_executor_active when an executor is gone.",
    ),
    _gauge(
        "ledgerops_executor_removed_timestamp_seconds",
        "When Spark removed an executor; only the newest removed executors are kept.",
        _removed_at,
        "executor",
        unused="Read beside ledgerops_executor_active when an executor is gone.",
    ),
    _gauge("ledgerops_executor_cores", "Task slots of an executor.", _executors(lambda e: e.cores), "executor"),
    _gauge(
        "ledgerops_executor_active_tasks",
        "Tasks at work in an executor now.",
        _executors(lambda e: e.active_tasks),
        "executor",
    ),
    _counter(
        "ledgerops_executor_tasks_total",
        "Tasks that an executor completed.",
        _executors(lambda e: e.completed_tasks),
        "executor",
    ),
    _counter(
        "ledgerops_executor_failed_tasks_total",
        "Tasks that failed in an executor.",
        _executors(lambda e: e.failed_tasks),
        "executor",
    ),
    _counter(
        "ledgerops_executor_run_seconds_total",
        "Task time of an executor; the rate over its cores is how busy it is.",
        _executors(lambda e: e.run_seconds),
        "executor",
    ),
    _counter(
        "ledgerops_executor_gc_seconds_total",
        "Garbage collection time of an executor's JVM; above a tenth of the task time it hurts.",
        _executors(lambda e: e.gc_seconds),
        "executor",
    ),
    _gauge(
        "ledgerops_executor_storage_memory_bytes",
        "Storage memory in use in an executor.",
        _executors(lambda e: e.memory_used_bytes),
        "executor",
    ),
    _gauge(
        "ledgerops_executor_storage_memory_max_bytes",
        "Storage memory that an executor may use.",
        _executors(lambda e: e.memory_max_bytes),
        "executor",
    ),
    _gauge(
        "ledgerops_executor_heap_peak_bytes",
        "Highest JVM heap use that an executor has reported.",
        _executors(lambda e: e.heap_peak_bytes),
        "executor",
    ),
    _counter(
        "ledgerops_executor_shuffle_read_bytes_total",
        "Bytes that an executor read from shuffles.",
        _executors(lambda e: e.shuffle_read_bytes),
        "executor",
    ),
    _counter(
        "ledgerops_executor_shuffle_write_bytes_total",
        "Bytes that an executor wrote for shuffles.",
        _executors(lambda e: e.shuffle_write_bytes),
        "executor",
    ),
    _gauge("ledgerops_host_cpus", "Logical CPUs of the driver's machine.", _host(lambda h: h.cpu_count)),
    _gauge(
        "ledgerops_host_cpu_busy_ratio",
        "Share of all CPUs of the driver's machine in use; near 1 every query on it slows down.",
        _host(lambda h: h.cpu_busy_ratio),
    ),
    _gauge(
        "ledgerops_host_cpu_pressure_ratio",
        "Share of the last 10 seconds in which a task of the driver's machine waited for a CPU (Linux PSI).",
        _host(lambda h: h.cpu_pressure_ratio),
        unused="Evidence of a machine that is too busy; ledgerops_host_cpu_busy_ratio is on the dashboards.",
    ),
    _gauge(
        "ledgerops_host_cpu_steal_ratio",
        "Share of CPU time that the hypervisor gave to other machines.",
        _host(lambda h: h.cpu_steal_ratio),
        unused="Evidence of a machine that is too slow; ledgerops_host_cpu_busy_ratio is on the dashboards.",
    ),
    _gauge(
        "ledgerops_host_runnable_threads",
        "Threads of the driver's machine that run or wait for a CPU; above the number of CPUs they wait.",
        _host(lambda h: h.runnable_threads),
        unused="Evidence of a machine that is too busy; ledgerops_host_cpu_busy_ratio is on the dashboards.",
    ),
    _gauge("ledgerops_host_memory_bytes", "Memory of the driver's machine.", _host(lambda h: h.memory_total_bytes)),
    _gauge(
        "ledgerops_host_memory_available_bytes",
        "Memory that the driver's machine can still give without swapping.",
        _host(lambda h: h.memory_available_bytes),
    ),
    _gauge(
        "ledgerops_host_disk_bytes", "Size of the disk that ledgerops records to.", _host(lambda h: h.disk_total_bytes)
    ),
    _gauge(
        "ledgerops_host_disk_free_bytes",
        "Free space on the disk that ledgerops records to.",
        _host(lambda h: h.disk_free_bytes),
    ),
    _counter(
        "ledgerops_process_cpu_seconds_total",
        "CPU time of the driver's Python, its JVM, and its Python workers together.",
        _processes(lambda p: p.cpu_seconds),
        "kind",
    ),
    _gauge(
        "ledgerops_process_memory_bytes",
        "Resident memory of the driver's Python, its JVM, and its Python workers together.",
        _processes(lambda p: p.memory_bytes),
        "kind",
    ),
    _gauge(
        "ledgerops_process_threads",
        "Threads of the driver's Python, its JVM, and its Python workers together.",
        _processes(lambda p: p.threads),
        "kind",
    ),
    _gauge(
        "ledgerops_process_open_files",
        "Open file descriptors of the driver's Python, its JVM, and its Python workers together.",
        _processes(lambda p: p.open_files),
        "kind",
    ),
    _gauge(
        "ledgerops_processes",
        "Processes of each kind; Python workers come and go with the load.",
        _processes(lambda p: p.processes),
        "kind",
    ),
)
