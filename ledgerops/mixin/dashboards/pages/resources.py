"""Resources: executors, the driver's JVM and Python, and its machine."""

from __future__ import annotations

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import Page, Panel, Row, Target, by, d, over, pace, rate

PAGE = Page(
    uid="ledgerops-resources",
    title="ledgerops / Resources",
    help="Executors, the processes of the driver, and the driver's machine.",
    rows=(
        Row(
            "Executors",
            (
                Panel(
                    "Active",
                    (Target(by("sum", "instance", d("ledgerops_executor_active")), "{{instance}}"),),
                    "short",
                    "Executors alive, the driver itself in local mode. Good: as many as were asked for.",
                    width=6,
                ),
                Panel(
                    "Busy",
                    (
                        Target(
                            by("sum", "instance, executor", rate(d("ledgerops_executor_run_seconds_total")))
                            + " / "
                            + by("sum", "instance, executor", d("ledgerops_executor_cores")),
                            "{{instance}} {{executor}}",
                        ),
                    ),
                    "percentunit",
                    f"Task time over cores. Good: below {thresholds.percent(thresholds.FULL)}.",
                    warn=thresholds.FULL,
                    width=6,
                ),
                Panel(
                    "Garbage collection",
                    (
                        Target(
                            over(
                                by("sum", "instance, executor", rate(d("ledgerops_executor_gc_seconds_total"))),
                                by("sum", "instance, executor", rate(d("ledgerops_executor_run_seconds_total"))),
                            ),
                            "{{instance}} {{executor}}",
                        ),
                    ),
                    "percentunit",
                    f"Share of the task time that goes into garbage collection. Good: below {thresholds.percent(thresholds.GC)}.",
                    warn=thresholds.GC,
                    width=6,
                ),
                Panel(
                    "Heap peak",
                    (
                        Target(
                            by("max", "instance, executor", d("ledgerops_executor_heap_peak_bytes")),
                            "{{instance}} {{executor}}",
                        ),
                    ),
                    "bytes",
                    "Highest heap use reported. Good: below the executor's memory.",
                    width=6,
                    waits="an executor that reports its peak",
                    drill="gc-pressure",
                ),
                Panel(
                    "Tasks",
                    (
                        pace(d("ledgerops_executor_tasks_total"), "{{instance}} {{executor}}", "instance, executor"),
                        pace(
                            d("ledgerops_executor_failed_tasks_total"),
                            "{{instance}} {{executor}} failed",
                            "instance, executor",
                        ),
                    ),
                    "ops",
                    "Tasks completed and failed. Good: none failed.",
                    width=6,
                ),
                Panel(
                    "Active tasks",
                    (
                        Target(
                            by("sum", "instance, executor", d("ledgerops_executor_active_tasks")),
                            "{{instance}} {{executor}}",
                        ),
                        Target(
                            by("sum", "instance, executor", d("ledgerops_executor_cores")),
                            "{{instance}} {{executor}} cores",
                        ),
                    ),
                    "short",
                    "Tasks at work against task slots. Good: below the slots.",
                    width=6,
                ),
                Panel(
                    "Shuffle",
                    (
                        pace(
                            d("ledgerops_executor_shuffle_read_bytes_total"),
                            "{{instance}} {{executor}} read",
                            "instance, executor",
                        ),
                        pace(
                            d("ledgerops_executor_shuffle_write_bytes_total"),
                            "{{instance}} {{executor}} write",
                            "instance, executor",
                        ),
                    ),
                    "Bps",
                    "Bytes moved between stages. Good: in proportion to the rows read.",
                    width=6,
                ),
                Panel(
                    "Storage memory",
                    (
                        Target(
                            over(
                                by("sum", "instance, executor", d("ledgerops_executor_storage_memory_bytes")),
                                by("sum", "instance, executor", d("ledgerops_executor_storage_memory_max_bytes")),
                            ),
                            "{{instance}} {{executor}}",
                        ),
                    ),
                    "percentunit",
                    f"Storage memory in use. Good: below {thresholds.percent(thresholds.FULL)}.",
                    warn=thresholds.FULL,
                    most=1.0,
                    width=6,
                ),
            ),
        ),
        Row(
            "Driver",
            (
                Panel(
                    "CPU by process",
                    (
                        pace(d("ledgerops_process_cpu_seconds_total"), "{{instance}} {{kind}}", "instance, kind"),
                        Target(by("max", "instance", d("ledgerops_host_cpus")), "{{instance}} cores"),
                    ),
                    "short",
                    "Cores in use by the driver's Python, its JVM and its Python workers. Good: in sum below the machine's cores.",
                ),
                Panel(
                    "Memory by process",
                    (
                        Target(
                            by("sum", "instance, kind", d("ledgerops_process_memory_bytes")), "{{instance}} {{kind}}"
                        ),
                    ),
                    "bytes",
                    "Resident memory. Good: a plateau.",
                    stacked=True,
                ),
                Panel(
                    "Threads",
                    (Target(by("sum", "instance, kind", d("ledgerops_process_threads")), "{{instance}} {{kind}}"),),
                    "short",
                    "Threads. Good: a plateau; a steady rise is a leak.",
                ),
                Panel(
                    "Open files",
                    (Target(by("sum", "instance, kind", d("ledgerops_process_open_files")), "{{instance}} {{kind}}"),),
                    "short",
                    "Open file descriptors. Good: a plateau.",
                    width=12,
                ),
                Panel(
                    "Processes",
                    (Target(by("sum", "instance, kind", d("ledgerops_processes")), "{{instance}} {{kind}}"),),
                    "short",
                    "Python workers come and go with the load. Good: a small multiple of the cores.",
                    width=12,
                ),
            ),
        ),
        Row(
            "Machine",
            (
                Panel(
                    "CPU",
                    (Target(by("max", "instance", d("ledgerops_host_cpu_busy_ratio")), "{{instance}}"),),
                    "percentunit",
                    f"All cores in use. Good: below {thresholds.percent(thresholds.CPU)}.",
                    warn=thresholds.CPU,
                    most=1.0,
                ),
                Panel(
                    "Memory available",
                    (
                        Target(
                            by("min", "instance", d("ledgerops_host_memory_available_bytes"))
                            + " / "
                            + by("max", "instance", d("ledgerops_host_memory_bytes")),
                            "{{instance}}",
                        ),
                    ),
                    "percentunit",
                    f"Memory that can still be given without swapping. Good: above {thresholds.percent(thresholds.SCARCE)}.",
                    warn=thresholds.SCARCE,
                    low=True,
                    most=1.0,
                ),
                Panel(
                    "Disk free",
                    (
                        Target(
                            by("min", "instance", d("ledgerops_host_disk_free_bytes"))
                            + " / "
                            + by("max", "instance", d("ledgerops_host_disk_bytes")),
                            "{{instance}}",
                        ),
                    ),
                    "percentunit",
                    f"Free space on the disk that ledgerops records to. Good: above {thresholds.percent(thresholds.SCARCE)}.",
                    warn=thresholds.SCARCE,
                    low=True,
                    most=1.0,
                ),
            ),
        ),
    ),
)
