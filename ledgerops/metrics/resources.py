"""Executors (from Spark) and the driver's machine and processes (psutil)."""

from collections.abc import Callable

from ledgerops.metrics.model import Labels, Metric, Series, known
from ledgerops.model.records import DRIVER, Executor, Host, Process


def _executor(name: str, text: str, value: Callable[[Executor], float | None]) -> Metric[Host]:
    def read(host: Host) -> Series:
        return {(each.executor_id,): float(x) for each in host.workers if (x := value(each)) is not None}

    return Metric(name, text, ("executor",), read)


def _process(name: str, text: str, value: Callable[[Process], float | None]) -> Metric[Host]:
    def read(host: Host) -> Series:
        return {(each.role,): float(x) for each in host.processes if (x := value(each)) is not None}

    return Metric(name, text, ("kind",), read)


def _host(name: str, text: str, value: Callable[[Host], float | None]) -> Metric[Host]:
    return Metric(name, text, read=lambda host: known(value(host)))


def _active(host: Host) -> Series:
    found: dict[Labels, float] = {(each.executor_id,): 0.0 for each in host.removed_executors}
    found.update({(each.executor_id,): float(each.active) for each in host.workers})
    return found


METRICS: tuple[Metric[Host], ...] = (
    Metric("ledgerops_executor_active", "1 for each executor that is alive, 0 for one that was lost or released.",
        ("executor",), _active),
    Metric("ledgerops_executor_removed_info",
        "Why Spark removed an executor; only the newest removed executors are kept.", labels=("executor", "reason"),
        read=lambda host: {(each.executor_id, each.reason or "unknown"): 1.0 for each in host.removed_executors}),
    _executor("ledgerops_executor_cores", "Task slots of an executor.", lambda e: e.cores),
    _executor("ledgerops_executor_active_tasks", "Tasks that an executor runs now.", lambda e: e.active_tasks),
    _executor("ledgerops_executor_tasks_total", "Tasks that an executor completed.", lambda e: e.completed_tasks),
    _executor("ledgerops_executor_failed_tasks_total", "Tasks that failed in an executor.", lambda e: e.failed_tasks),
    _executor("ledgerops_executor_run_seconds_total",
        "Task time of an executor; the rate over its cores is how busy it is. None in local mode: Spark gives its age.",
        lambda e: None if e.executor_id == DRIVER else e.run_seconds),
    _executor("ledgerops_executor_gc_seconds_total",
        "Garbage collection time of an executor's JVM; above a tenth of the task time it slows queries down.",
        lambda e: e.gc_seconds),
    _executor("ledgerops_executor_storage_memory_bytes", "Storage memory in use in an executor.",
        lambda e: e.memory_used_bytes),
    _executor("ledgerops_executor_storage_memory_max_bytes", "Storage memory that an executor may use.",
        lambda e: e.memory_max_bytes),
    _executor("ledgerops_executor_heap_peak_bytes", "Highest JVM heap use that an executor has reported.",
        lambda e: e.heap_peak_bytes),
    _executor("ledgerops_executor_shuffle_read_bytes_total", "Bytes that an executor read from shuffles.",
        lambda e: e.shuffle_read_bytes),
    _host("ledgerops_host_cpus", "Logical CPUs of the driver's machine.", lambda h: h.cpu_count),
    _host("ledgerops_host_cpu_busy_ratio",
        "Share of all CPUs of the driver's machine in use; near 1 every query on it slows down.",
        lambda h: h.cpu_busy_ratio),
    _host("ledgerops_host_cpu_pressure_ratio",
        "Share of the last 10 seconds in which a task of the driver's machine waited for a CPU (Linux PSI).",
        lambda h: h.cpu_pressure_ratio),
    _host("ledgerops_host_cpu_steal_ratio", "Share of CPU time that the hypervisor gave to other machines.",
        lambda h: h.cpu_steal_ratio),
    _host("ledgerops_host_runnable_threads",
        "Threads of the driver's machine that run or wait for a CPU; above the number of CPUs they wait.",
        lambda h: h.runnable_threads),
    _host("ledgerops_host_cpu_limit_cores", "CPU limit of the driver's container; absent where it has none.",
        lambda h: h.cpu_limit_cores),
    _host("ledgerops_host_cpu_held_back_seconds_total",
        "Time, summed over CPUs, in which the driver's container held back threads because its CPU limit was used up.",
        lambda h: h.cpu_held_back_seconds),
    _host("ledgerops_host_memory_bytes", "Memory of the driver's machine, or the memory limit of its container.",
        lambda h: h.memory_total_bytes),
    _host("ledgerops_host_memory_available_bytes",
        "Memory available on the driver's machine, or left in its container, without swapping.",
        lambda h: h.memory_available_bytes),
    _host("ledgerops_host_disk_bytes", "Size of the disk that ledgerops records to.", lambda h: h.disk_total_bytes),
    _host("ledgerops_host_disk_free_bytes", "Free space on the disk that ledgerops records to.",
        lambda h: h.disk_free_bytes),
    _process("ledgerops_process_cpu_seconds_total",
        "CPU time of the driver's Python, its JVM, and its Python workers together.", lambda p: p.cpu_seconds),
    _process("ledgerops_process_memory_bytes",
        "Resident memory of the driver's Python, its JVM, and its Python workers together.", lambda p: p.memory_bytes),
    _process("ledgerops_process_threads", "Threads of the driver's Python, its JVM, and its Python workers together.",
        lambda p: p.threads),
    _process("ledgerops_process_open_files",
        "Open file descriptors of the driver's Python, its JVM, and its Python workers together.",
        lambda p: p.open_files),
    _process("ledgerops_processes", "Processes of each kind; Python workers come and go with the load.",
        lambda p: p.processes),
)  # fmt: skip
