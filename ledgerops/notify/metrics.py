"""What notify counts about itself, for its own /metrics: deliveries by sender, what waits, what was refused."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ledgerops.metrics.model import Labels, Metric
from ledgerops.runtime.exposition import render
from ledgerops.runtime.family import Family, series_of
from ledgerops.runtime.snapshot import Published
from ledgerops.version import __version__

SENDER = ("sender",)


@dataclass(slots=True)
class Counts:
    """Several threads write: use the methods."""

    accepted: int = 0  # incidents that were new
    delivered: Counter[str] = field(default_factory=Counter)  # by sender
    failed: Counter[str] = field(default_factory=Counter)  # attempts by sender
    given_up: Counter[str] = field(default_factory=Counter)  # deliveries by sender
    refused: Counter[str] = field(default_factory=Counter)  # requests by reason
    without_diagnosis: int = 0  # messages about a query
    last_delivery: dict[str, float] = field(default_factory=dict)  # epoch seconds by sender
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def deliver(self, sender: str) -> None:
        """Counts a delivery that a sender has taken."""
        with self.lock:
            self.delivered[sender] += 1
            self.last_delivery[sender] = time.time()

    def fail(self, sender: str, given_up: bool) -> None:
        """Counts an attempt that failed, and the delivery if it is given up."""
        with self.lock:
            self.failed[sender] += 1
            self.given_up[sender] += given_up

    def refuse(self, reason: str) -> None:
        """Counts a refused request."""
        with self.lock:
            self.refused[reason] += 1

    def accept(self) -> None:
        """Counts an incident that was accepted and is new."""
        with self.lock:
            self.accepted += 1

    def lack_diagnosis(self) -> None:
        """Counts a message that had to be written without a diagnosis."""
        with self.lock:
            self.without_diagnosis += 1


def page(counts: Counts, waiting: Mapping[str, tuple[int, float]], kind: str) -> bytes:
    """/metrics; `waiting` has by sender how many deliveries wait, and the age of the oldest in seconds."""
    with counts.lock:
        families = list(_families(counts, waiting))
    return render(families, time.time(), kind)


def _families(counts: Counts, waiting: Mapping[str, tuple[int, float]]) -> Iterator[Published]:
    def by_sender(values: Mapping[str, float]) -> Mapping[Labels, float]:
        return {(sender,): values.get(sender, 0) for sender in waiting}

    given_up, last = "Deliveries that were given up as too old.", "Time of the last delivery."
    oldest = "Time since the oldest pending delivery was accepted; 0 if none is pending."
    late = "Messages about a query that were sent without a diagnosis."
    many = {sender: count for sender, (count, _) in waiting.items()}
    ages = {sender: age for sender, (_, age) in waiting.items()}
    yield _family("build_info", "The version, as a label; always 1.", {(__version__,): 1}, ("version",))
    yield _family("accepted_total", "Incidents that were accepted and are new.", {(): counts.accepted})
    yield _family("delivered_total", "Deliveries that the sender has taken.", by_sender(counts.delivered), SENDER)
    yield _family("failed_total", "Attempts to deliver that failed.", by_sender(counts.failed), SENDER)
    yield _family("given_up_total", given_up, by_sender(counts.given_up), SENDER)
    yield _family("waiting", "Deliveries that wait.", by_sender(many), SENDER)
    yield _family("oldest_waiting_seconds", oldest, by_sender(ages), SENDER)
    yield _family("last_delivery_timestamp_seconds", last, _labelled(counts.last_delivery), SENDER)
    yield _family("without_diagnosis_total", late, {(): counts.without_diagnosis})
    yield _family("refused_total", "Requests that were refused, by reason.", _labelled(counts.refused), ("reason",))


def _labelled(values: Mapping[str, float]) -> Mapping[Labels, float]:
    return {(name,): value for name, value in values.items()}


def _family(name: str, text: str, series: Mapping[Labels, float], labels: tuple[str, ...] = ()) -> Published:
    metric: Metric[Counts] = Metric(f"ledgerops_notify_{name}", text, labels)
    return Published(metric, [((), Family(metric, series_of(metric, series)))])
