"""The load generator's own series. `ledgerops load --metrics-port` serves them, not the exporter of a driver.

They are in the catalogue so that dashboards and documentation know them; the generator belongs to the workload and
imports nothing of this package, so nothing is read here.
"""

from __future__ import annotations

from typing import Any, Literal

from ledgerops.metrics.model import Metric

WORKER = ("plan", "worker")  # the load plan, and which of the processes that share it


def _of(name: str, kind: Literal["gauge", "counter", "histogram"], text: str) -> Metric[Any]:
    return Metric(name, kind, text, labels=WORKER)


METRICS: tuple[Metric[Any], ...] = (
    _of(
        "ledgerops_load_planned_records_total",
        "counter",
        "Records that were due by the plan's schedule, whatever became of them.",
    ),
    _of("ledgerops_load_produced_records_total", "counter", "Records handed to the target's client."),
    _of("ledgerops_load_acknowledged_records_total", "counter", "Records that the target has confirmed."),
    _of("ledgerops_load_refused_records_total", "counter", "Records that the target refused or that nobody knows of."),
    _of(
        "ledgerops_load_backpressure_seconds_total",
        "counter",
        "Time that the generator waited for room in the client's queue.",
    ),
    _of(
        "ledgerops_load_lateness_seconds",
        "histogram",
        "How long after its scheduled time a record was handed to the client.",
    ),
    _of("ledgerops_load_planned_rate", "gauge", "Records a second that the plan asks for now."),
    _of(
        "ledgerops_load_valid",
        "gauge",
        "1 while the run can be trusted, 0 once the generator was itself the bottleneck.",
    ),
)
