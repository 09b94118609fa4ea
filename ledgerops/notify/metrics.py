"""What notify counts about itself, for its own /metrics: deliveries by sender, what waits, what was refused."""

import threading
import time
from collections.abc import Mapping

from ledgerops.metrics.model import Labels, Metric
from ledgerops.runtime.exposition import render
from ledgerops.runtime.family import Family, series_of
from ledgerops.runtime.snapshot import Published
from ledgerops.version import __version__

SENDER = ("sender",)
FAMILIES = {  # name without its prefix -> help, labels; in the order of the page
    "build_info": ("The version, as a label; always 1.", ("version",)),
    "accepted_total": ("Incidents that were accepted and are new.", ()),
    "delivered_total": ("Deliveries that the sender has taken.", SENDER),
    "failed_total": ("Attempts to deliver that failed.", SENDER),
    "given_up_total": ("Deliveries that were given up as too old.", SENDER),
    "waiting": ("Deliveries that wait.", SENDER),
    "oldest_waiting_seconds": (
        "Time since the oldest pending delivery was accepted; 0 if none is pending.",
        SENDER,
    ),
    "last_delivery_timestamp_seconds": ("Time of the last delivery.", SENDER),
    "without_diagnosis_total": ("Messages about a query that were sent without a diagnosis.", ()),
    "refused_total": ("Requests that were refused, by reason.", ("reason",)),
}
METRICS: Mapping[str, Metric[None]] = {
    name: Metric(f"ledgerops_notify_{name}", text, labels) for name, (text, labels) in FAMILIES.items()
}


class Counts:
    """The totals, by name of the family and value of its label. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[str, float]] = {name: {} for name in METRICS}

    def add(self, name: str, label: str = "") -> None:
        """Counts one more; `label` is the value of the family's label, if it has one."""
        with self._lock:
            self._values[name][label] = self.of(name, label) + 1

    def deliver(self, sender: str) -> None:
        """Counts a delivery that a sender has taken, and notes its time."""
        self.add("delivered_total", sender)
        with self._lock:
            self._values["last_delivery_timestamp_seconds"][sender] = time.time()

    def of(self, name: str, label: str = "") -> float:
        """A total."""
        return self._values[name].get(label, 0)

    def page(self, waiting: Mapping[str, tuple[int, float]], kind: str) -> bytes:
        """/metrics; `waiting` has by sender how many deliveries wait, and the age of the oldest in seconds."""
        with self._lock:
            values = {name: {**of} for name, of in self._values.items()}
        values["build_info"] = {__version__: 1}
        values["waiting"] = {sender: count for sender, (count, _) in waiting.items()}
        values["oldest_waiting_seconds"] = {sender: age for sender, (_, age) in waiting.items()}
        for name in ("delivered_total", "failed_total", "given_up_total"):
            values[name] = dict.fromkeys(waiting, 0.0) | values[name]
        return render([_published(metric, values[name]) for name, metric in METRICS.items()], time.time(), kind)


def _published(metric: Metric[None], values: Mapping[str, float]) -> Published:
    series: dict[Labels, float] = {(): values.get("", 0)}
    if metric.labels:
        series = {(label,): value for label, value in values.items()}
    return Published(metric, [((), Family(metric, series_of(metric, series)))])
