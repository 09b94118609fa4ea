"""The load generator's own series. `ledgerops load --metrics-port` serves them, not the exporter of a driver.

They are in the catalogue so that dashboards and documentation know them; the generator belongs to the workload and
imports nothing of this package, so nothing is read here.
"""

from typing import Any

from ledgerops.metrics.model import Metric

WORKER = ("plan", "worker")  # the load plan, and which of the processes that share it
METRICS: tuple[Metric[Any], ...] = (
    Metric("ledgerops_load_planned_records_total", "Records due by the plan's schedule, whether or not they were sent.",
        WORKER),
    Metric("ledgerops_load_produced_records_total", "Records handed to the target's client.", WORKER),
    Metric("ledgerops_load_acknowledged_records_total", "Records that the target has confirmed.", WORKER),
    Metric("ledgerops_load_refused_records_total", "Records that the target rejected or whose delivery is unknown.",
        WORKER),
    Metric("ledgerops_load_backpressure_seconds_total",
        "Time that the generator waited for room in the client's queue.", WORKER),
    Metric("ledgerops_load_lateness_seconds", "How long after its scheduled time a record was handed to the client.",
        WORKER, bounds=()),  # the generator's own
    Metric("ledgerops_load_planned_rate", "Current rate of the plan's schedule, in records per second.", WORKER),
    Metric("ledgerops_load_valid", "1 while the run can be trusted, 0 once the generator was itself the bottleneck.",
        WORKER),
)  # fmt: skip
