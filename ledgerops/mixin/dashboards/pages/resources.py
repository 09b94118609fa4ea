"""Resources and observer: do machine, executors and driver have room, and does ledgerops itself keep up."""

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import EACH_DRIVER, Page, Panel, Row, Target, by, d, largest, over, rate, worst
from ledgerops.mixin.dashboards.pages import observer

EXECUTOR, PROCESS = f"{EACH_DRIVER}, executor", f"{EACH_DRIVER}, kind"
RUN = by("sum", EXECUTOR, rate(d("ledgerops_executor_run_seconds_total")))
# in local mode Spark gives no task time: the tasks at each look do for the load, and all time for the collector
ACTIVE = by("sum", EXECUTOR, f"avg_over_time({d('ledgerops_executor_active_tasks')}[$__rate_interval])")
LOAD = f"({RUN} or {ACTIVE}) / {by('sum', EXECUTOR, d('ledgerops_executor_cores'))}"
GC = by("sum", EXECUTOR, rate(d("ledgerops_executor_gc_seconds_total")))
COLLECTING = over(GC, f"({RUN} or {GC} * 0 + 1)")
HEAP = by("max", EXECUTOR, d("ledgerops_executor_heap_peak_bytes"))
NAME = "{{instance}} {{executor}}"


def least_left(part: str, whole: str, most: int = 5) -> tuple[Target, ...]:
    """What is left of something of a driver's machine, of those that have the least."""
    share = f"{by('min', EACH_DRIVER, d(part))} / {by('max', EACH_DRIVER, d(whole))}"
    return (Target(worst(share, EACH_DRIVER, least=True, most=most), "{{instance}}"),)


MACHINE = Row(
    "Do the driver's machine and processes have room?",
    (
        Panel(
            "CPU in use, five highest",
            (largest("max", EACH_DRIVER, d("ledgerops_host_cpu_busy_ratio"), "{{instance}}"),), "percentunit",
            f"All cores of the machine. Good: below {thresholds.percent(thresholds.CPU)}; above that, every query on it slows down.",
            warn=thresholds.CPU, most=1.0,
        ),
        Panel(
            "CPU by process, five highest",
            (largest("sum", PROCESS, rate(d("ledgerops_process_cpu_seconds_total")), "{{instance}} {{kind}}"),),
            "suffix: cores",
            "Cores that the driver's Python, its JVM and its Python workers use. Good: in sum below the machine's cores.",
        ),
        Panel(
            "Memory available, five lowest",
            least_left("ledgerops_host_memory_available_bytes", "ledgerops_host_memory_bytes"), "percentunit",
            f"Memory that can be given without swapping. Good: above {thresholds.percent(thresholds.FREE)}.",
            warn=thresholds.FREE, low=True, most=1.0,
        ),
        Panel(
            "Memory by process, five largest",
            (largest("sum", PROCESS, d("ledgerops_process_memory_bytes"), "{{instance}} {{kind}}"),),
            "bytes", "Resident memory. Good: a plateau.",
        ),
        Panel(
            "Disk free, ten lowest",
            least_left("ledgerops_host_disk_free_bytes", "ledgerops_host_disk_bytes", most=10), "percentunit",
            f"Free space on the disk that ledgerops records to. Good: above {thresholds.percent(thresholds.FREE)}.",
            warn=thresholds.FREE, low=True, most=1.0, width=24, height=6,
        ),
    ),
)  # fmt: skip
EXECUTORS = Row(
    "Do the executors have room?",
    (
        Panel(
            "Executor load, five highest", (Target(worst(LOAD, EXECUTOR), NAME),), "percentunit",
            f"Task time over cores. One executor far above the others is scheduler skew. Good: below {thresholds.percent(thresholds.FULL)} and alike.",
            warn=thresholds.FULL, empty="no executor has reported",
        ),
        Panel(
            "Garbage collection, five highest", (Target(worst(COLLECTING, EXECUTOR), NAME),), "percentunit",
            f"Share of the task time that goes into garbage collection. Good: below {thresholds.percent(thresholds.GC)}.",
            warn=thresholds.GC, empty="no executor has reported",
        ),
        Panel(
            "Highest heap use, five largest", (Target(worst(HEAP, EXECUTOR), NAME),), "bytes",
            "The highest heap use that each executor has reported. Good: below the executor's memory.",
            waits="an executor that reports its peak", drill="gc-pressure",
        ),
        Panel(
            "Failed tasks", (largest("sum", EXECUTOR, rate(d("ledgerops_executor_failed_tasks_total")), NAME),),
            "suffix: tasks/s", "Tasks that failed, by executor. Good: 0.", warn=thresholds.ANY,
            empty="no executor has reported",
        ),
    ),
)  # fmt: skip
PAGE = Page(
    uid="ledgerops-resources", title="ledgerops / Resources and observer",
    help="Machines, executors and processes of the drivers, and what observation costs and missed.",
    rows=(MACHINE, EXECUTORS, observer.ROW),
)  # fmt: skip
