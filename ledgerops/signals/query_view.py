"""One query at one moment: the signals that metrics, rules and displays read, each computed at most once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from ledgerops.config import FRESHNESS_OBJECTIVE_SECONDS
from ledgerops.model.history import History
from ledgerops.model.records import Host, Observer, Partition, Plan, Progress, SourceProgress, StateOperator
from ledgerops.signals.baseline import Baseline
from ledgerops.signals.capacity import Capacity
from ledgerops.signals.cluster import Cluster
from ledgerops.signals.lag import Lag
from ledgerops.signals.memo import kept
from ledgerops.signals.rates import Rates
from ledgerops.signals.run import Run
from ledgerops.signals.skew import Skew
from ledgerops.signals.tables import Tables
from ledgerops.signals.trigger import Trigger


class QueryView:
    """All signals of a history at `now`, by topic. Reads only; make a new one when either changes.

    `hosts` are readings of the driver's machine and `observer` those of ledgerops itself, oldest first; `others` are
    the driver's other queries; `freshness` is the objective: how old results may be, in seconds; `trigger_interval`
    is given by the caller where neither plan nor log has it.
    """

    def __init__(
        self,
        history: History,
        now: float,
        hosts: Sequence[Host] = (),
        others: Sequence[History] = (),
        freshness: float = FRESHNESS_OBJECTIVE_SECONDS,
        observer: Sequence[Observer] = (),
        trigger_interval: float | None = None,
    ) -> None:
        self.history = history
        self.now = now
        later = bool(hosts) and hosts[-1].at > now  # of a query that has ended: they go on for the others
        self.hosts = [sample for sample in hosts if sample.at <= now] if later else hosts
        self.others = others
        self.observer = observer
        self.freshness = freshness
        self._trigger_interval = trigger_interval
        self.run = Run(history, now)
        self.baseline = Baseline(self.run, trigger_interval)
        self.rates = Rates(self.run)
        self.lag = Lag(self.run)
        self.tables = Tables(self.run)
        self.capacity = Capacity(self.baseline, self.rates, self.lag)
        self.cluster = Cluster(self.hosts)
        self.skew = Skew(self.run, self.cluster)
        self.named: Set[str] = frozenset()  # the rules that the verdict before holds
        self.answers: dict[object, Any] = {}  # of the functions of this view that `once` remembers

    def at(self, now: float, freshness: float | None = None) -> QueryView:
        """The same query at another moment, or held to another objective."""
        kept = self.freshness if freshness is None else freshness
        return QueryView(self.history, now, self.hosts, self.others, kept, self.observer, self._trigger_interval)

    def of_copy(self, history: History) -> QueryView:
        """The same moment of a copy of the history, without the other queries, for whoever reads it later."""
        interval = self._trigger_interval
        return QueryView(history, self.now, tuple(self.hosts), freshness=self.freshness, trigger_interval=interval)

    @property
    def query(self) -> str:
        """The name of the query, as in its history."""
        return self.history.query

    @kept
    def batches(self) -> Sequence[Progress]:
        """The remembered batches of the current run, oldest first."""
        return self.run.batches

    @kept
    def last(self) -> Progress | None:
        """The newest batch of the run; None before the first."""
        return self.run.last

    @property
    def sources(self) -> Sequence[SourceProgress]:
        """Those of the newest batch; none before the first."""
        return self.run.sources

    @property
    def operators(self) -> Sequence[StateOperator]:
        """The state operators of the newest batch; none before the first."""
        return self.last.operators if self.last is not None else ()

    @kept
    def interval(self) -> float:
        """The trigger interval in seconds; 0 where there is none, or none is known."""
        return self.trigger.interval or 0.0

    @kept
    def plan(self) -> Plan:
        """What is known of the run's plan; all unknown when the plan was not read."""
        return self.run.plan

    @kept
    def trigger(self) -> Trigger:
        """The rhythm of the run's batches."""
        return self.baseline.trigger

    @kept
    def unread_since(self) -> Mapping[Partition, float]:
        """When the oldest unread row came, in epoch seconds, of partitions by their offsets, and of tables and sources
        that tell it themselves; infinity where nothing is left."""
        others = self.tables.unread_since
        return {**self.lag.unread_since, **others} if others else self.lag.unread_since

    @property
    def lag_seconds(self) -> float | None:
        """The age of the oldest unread row of all sources, now; None where none tells it."""
        oldest = min(self.unread_since.values(), default=None)
        return None if oldest is None else max(0.0, self.now - oldest)
