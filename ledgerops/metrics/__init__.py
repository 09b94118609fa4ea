"""Every series ledgerops exports, defined once; exporter, dashboards, alerts and docs are made from METRICS.

GENERATOR_METRICS are those of `ledgerops load`, which has an endpoint of its own.
"""

from typing import Any

from ledgerops.metrics import (
    event_time,
    generator,
    identity,
    integrity,
    latency,
    pressure,
    resources,
    self_watch,
    skew,
    state,
    throughput,
    verdict,
)
from ledgerops.metrics.model import Metric

QUERY_METRICS = (
    *identity.METRICS,
    *throughput.METRICS,
    *latency.METRICS,
    *event_time.METRICS,
    *pressure.METRICS,
    *state.METRICS,
    *skew.METRICS,
    *integrity.METRICS,
)
VERDICT_METRICS = verdict.METRICS
DRIVER_METRICS = resources.METRICS
SELF_METRICS = self_watch.METRICS
GENERATOR_METRICS = generator.METRICS
METRICS: tuple[Metric[Any], ...] = (
    *QUERY_METRICS,
    *VERDICT_METRICS,
    *DRIVER_METRICS,
    *SELF_METRICS,
    *GENERATOR_METRICS,
)
PER_BATCH = tuple(metric for metric in QUERY_METRICS if metric.per_batch is not None)
