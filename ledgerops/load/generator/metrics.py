"""The load generator's own metrics, made at scrape time from the counts of its senders.

They show whether the generator keeps to its plan; the series of the queries under load are another exporter's.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from ledgerops.errors import UserError, os_reason
from ledgerops.load.generator.accounting import SentCounts
from ledgerops.load.generator.validity import LATE_BUDGET, judge_so_far

LOOPBACK = "127.0.0.1"
LABELS = ("plan", "worker")
# seconds; the budget of 50 ms and half and double of it are among them
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
COUNTERS = {  # attribute of the counts -> name and help
    "planned": ("planned_records", "Records due so far by the schedule, including poison."),
    "produced": ("produced_records", "Records handed over to the target."),
    "acknowledged": ("acknowledged_records", "Records acknowledged by all replicas."),
    "refused": ("refused_records", "Records permanently rejected by the target."),
    "backpressure_seconds": ("backpressure_seconds", "Time during which the target was full and records had to wait."),
}


class LoadMetrics(Collector):
    """The latest counts of each sender."""

    def __init__(self, plan: str, late_budget: float = LATE_BUDGET) -> None:
        self._plan, self._budget = plan, late_budget
        self._sent: dict[str, SentCounts] = {}

    def publish(self, sent: SentCounts, worker: int | str = 0) -> None:
        """Replaces the counts that are shown for a sender."""
        self._sent[str(worker)] = sent

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]:
        """Yields all families with their present values, at each scrape."""
        senders = sorted(self._sent.items())
        for attribute, (name, text) in COUNTERS.items():
            counter = CounterMetricFamily(f"ledgerops_load_{name}", text, labels=LABELS)
            for worker, sent in senders:
                counter.add_metric((self._plan, worker), getattr(sent, attribute))
            yield counter
        late = HistogramMetricFamily(
            "ledgerops_load_lateness_seconds",
            "Delay between the time a record was due and the time it was handed over.",
            labels=LABELS,
        )
        rate = GaugeMetricFamily(
            "ledgerops_load_planned_rate", "Current scheduled rate in records per second.", labels=LABELS
        )
        valid = GaugeMetricFamily(
            "ledgerops_load_valid", "Whether the generator has kept to its schedule so far.", labels=LABELS
        )
        for worker, sent in senders:
            labels = (self._plan, worker)
            late.add_metric(labels, _buckets(sent), sent.late_seconds)
            rate.add_metric(labels, sent.rate)
            valid.add_metric(labels, judge_so_far(sent, self._budget) is None)
        yield from (late, rate, valid)


def _buckets(sent: SentCounts) -> list[tuple[str, float]]:
    # they count whole milliseconds, rounded down: entry i holds lateness of [i, i + 1) ms
    upto = np.cumsum(sent.lateness)
    found = [(f"{bound:g}", float(upto[max(0, int(bound * 1000) - 1)])) for bound in BUCKETS]
    return [*found, ("+Inf", float(upto[-1]))]


@contextmanager
def serving(port: int | None, metrics: LoadMetrics, say: Callable[[str], None], host: str = LOOPBACK) -> Iterator[None]:
    """Serves the metrics while the context is open, or nothing if `port` is None. Raises UserError if it is in use."""
    if port is None:
        yield
        return
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        reason = os_reason(error)
        raise UserError(f"cannot serve metrics on port {port}: {reason}; choose another --metrics-port") from None
    say(f"metrics of the load on {host}, port {server.server_port}, path /metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(1.0)
