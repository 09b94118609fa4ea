"""What a load has sent: what was due, what was handed over, what became of it, and how late each record was.

Lateness is counted by the millisecond, so counts of several senders add up without averaging percentiles.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledgerops.ledger.plan.partitioning import Ints
from ledgerops.ledger.plan.summary import HASH_MODULUS, Bucket, Summary, Tally

MAX_LATENESS_MS = 60_000  # anything later is counted as this, but reported in full as the latest
# of several senders, the counts that are added up
SUMMED = (
    *("planned", "produced", "acknowledged", "refused", "backpressured", "backpressure_seconds", "rate"),
    *("late_seconds", "lateness", "poison"),
)


def _no_lateness() -> Ints:
    return np.zeros(MAX_LATENESS_MS + 1, np.int64)


@dataclass
class SentCounts:
    """What was handed to the target: of the sender's share all records numbered below `records`, and no other."""

    records: int = 0
    planned: int = 0  # due by the schedule until now, with poison; where the sender is behind, estimated
    produced: int = 0  # handed over, with poison
    acknowledged: int = 0
    refused: int = 0
    problem: str | None = None  # why the first record was refused
    backpressured: int = 0  # how often the target was full
    backpressure_seconds: float = 0.0  # for how long in all
    rate: float = 0.0  # records a second due now
    seconds: float = 0.0
    latest: float = 0.0  # seconds by which the latest record was late
    late_seconds: float = 0.0  # lateness of all records, added up
    lateness: Ints = field(default_factory=_no_lateness)  # records by ms after they were due
    summary: Summary = field(default_factory=Summary)
    poison: Counter[str] = field(default_factory=Counter)

    def late(self, share: float) -> float:
        """Seconds behind the schedule that so large a share of the records did not exceed."""
        upto = np.cumsum(self.lateness)
        return float(np.searchsorted(upto, share * upto[-1])) / 1000 if upto[-1] else 0.0

    def add_lateness(self, behind: NDArray[np.float64]) -> None:
        """`behind`: seconds after it was due for each record that has just been handed over."""
        if not len(behind):
            return
        behind = np.maximum(behind, 0.0)
        counts = np.bincount(np.minimum(behind * 1000, MAX_LATENESS_MS).astype(np.int64))
        self.lateness[: len(counts)] += counts
        self.latest = max(self.latest, float(behind.max()))
        self.late_seconds += float(behind.sum())

    def document(self, summed: bool = True) -> dict[str, Any]:
        """The counts as JSON, for the process that adds them up. Without `summed`, no summary of the rows."""
        plain = {name: value for name, value in vars(self).items() if name not in ("lateness", "summary", "poison")}
        late = np.flatnonzero(self.lateness)
        return {
            **plain,
            "lateness": [late.tolist(), self.lateness[late].tolist()],
            "summary": (self.summary if summed else Summary()).document(),
            "poison": dict(self.poison),
        }

    @classmethod
    def read(cls, document: dict[str, Any]) -> SentCounts:
        """The counts that `document` wrote."""
        lateness = _no_lateness()
        at, counts = document["lateness"]
        lateness[np.asarray(at, np.int64)] = counts
        return cls(
            **{
                **document,
                "lateness": lateness,
                "summary": Summary.read(document["summary"]),
                "poison": Counter(document["poison"]),
            }
        )


def add_up(parts: list[SentCounts]) -> SentCounts:
    """The counts of senders that share one stream, as if one sender had sent all of it."""
    if not parts:
        return SentCounts()
    whole = SentCounts(
        records=min(each.records for each in parts),
        problem=next((each.problem for each in parts if each.problem), None),
        seconds=max(each.seconds for each in parts),
        latest=max(each.latest for each in parts),
    )
    for each in parts:
        for name in SUMMED:
            setattr(whole, name, getattr(whole, name) + getattr(each, name))
        _add(whole.summary, each.summary)
    return whole


def _add(whole: Summary, part: Summary) -> None:
    _add_tally(whole.all, part.all)
    _add_tally(whole.distinct, part.distinct)
    whole.late += part.late
    whole.latest_seconds = max(whole.latest_seconds, part.latest_seconds)
    whole.future += part.future
    whole.ahead_seconds = max(whole.ahead_seconds, part.ahead_seconds)
    whole.conflicting += part.conflicting
    for begin, bucket in part.buckets.items():
        whole.buckets[begin] = whole.buckets.get(begin, Bucket()) + bucket


def _add_tally(whole: Tally, part: Tally) -> None:
    whole.rows += part.rows
    whole.balances += part.balances
    for kind, cents in part.amounts.items():
        whole.amounts[kind] = whole.amounts.get(kind, 0) + cents
    for name, digest in part.digests.items():
        whole.digests[name] = (whole.digests.get(name, 0) + digest) % HASH_MODULUS
