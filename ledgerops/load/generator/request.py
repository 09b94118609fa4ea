"""What somebody wants sent, where and how: plain values that can go to other processes, and what is made of them."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ledgerops.errors import UserError
from ledgerops.ledger.plan.manifest import Manifest
from ledgerops.ledger.plan.plan import load_plan, parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream, ReplayStream, Table
from ledgerops.ledger.plan.sections import MAX_RECORDS_PER_SECOND
from ledgerops.ledger.sources.kafka import TOPICS
from ledgerops.load.generator.accounting import SentCounts
from ledgerops.load.generator.latency_samples import Sampler, every, part_of
from ledgerops.load.generator.target import ALL, Share, Target

if TYPE_CHECKING:
    from ledgerops.load.generator.kafka import KafkaTarget

REPLAY = "replay"
MOST_RECORDS = 2**40  # a million a second for twelve days
REPLAY_RATE = 500.0  # records a second, as in a replay of `ledgerops run`


@dataclass(frozen=True, kw_only=True)
class LoadRequest:
    """`read_request` makes one of a command's options. The plan is carried as text, the replayed file by its path."""

    plan: str  # the plan's name, or replay
    table: str = "transactions"
    text: str | None = None  # of the plan, scaled; None: a replay
    data: str | None = None  # folder of the replayed file
    rate: float = REPLAY_RATE  # of a replay
    servers: str | None = None
    config: str | None = None  # file with options of the Kafka client
    prefix: str = ""
    to: str | None = None  # the landing folder
    records: int | None = None  # of the stream; None: it has no end
    at_once: bool = False
    origin: float = 0.0  # when the schedule begins, seconds since the epoch
    samples: str | None = None
    sample_every: int | None = None

    def stream(self) -> PlanStream | ReplayStream:
        """The records to send. Raises UserError if the plan or the replayed file cannot be read."""
        table = cast("Table", self.table)
        if self.text is None:
            return _replay(Path(self.data or "") / "transactions.csv", self.rate, table)
        return PlanStream(parse_plan(self.text, self.plan), self.origin, table)

    @property
    def topic(self) -> str | None:
        """Name of the Kafka topic, with its prefix; None for a landing folder."""
        return None if self.servers is None else self.prefix + TOPICS[self.table]

    def target(
        self,
        partitions: int,
        wait: Callable[[float], bool] = lambda seconds: False,
        say: Callable[[str], None] = lambda text: None,
        share: Share = ALL,
        first: bool = True,
    ) -> Target:
        """Raises UserError where it cannot be had. `first`: whether to look at what the topic holds already."""
        if self.to is not None:
            from ledgerops.load.generator.landing import LandingTarget

            name = REPLAY if self.text is None else f"load-{round(self.origin * 1000)}"
            return LandingTarget(Path(self.to), self.table, name if share == ALL else f"{name}-{share.number}")
        return self._kafka(partitions, wait, say if first else lambda text: None)

    def _kafka(self, partitions: int, wait: Callable[[float], bool], say: Callable[[str], None]) -> KafkaTarget:
        from ledgerops.common.kafka import read_client
        from ledgerops.load.generator.kafka import KafkaTarget

        assert self.servers is not None and self.topic is not None
        client = read_client(self.servers, None if self.config is None else Path(self.config))
        return KafkaTarget(client, self.topic, partitions, wait, say)

    def sampler(self, stream: PlanStream | ReplayStream, share: Share = ALL) -> Sampler | None:
        """For one of several senders the file's name gets its number."""
        if self.samples is None:
            return None
        file = Path(self.samples)
        if share != ALL:
            file = part_of(file, share.number)
        return Sampler(self.sample_every or every(stream, self.records), file, self.at_once)

    def begins(self, after: float = 0.0) -> LoadRequest:
        """The same with a schedule that starts `seconds` from now; with --at-once the start is in the past anyway."""
        return self if self.at_once else replace(self, origin=round(time.time() + after, 3))

    @property
    def where(self) -> str:
        """The place, as a person reads it."""
        return f"{self.to}/{self.table}" if self.to is not None else f"{self.topic} at {self.servers}"

    def manifest(self, sent: SentCounts, **more: Any) -> Manifest:
        """What was sent, with `more` about how."""
        stream = self.stream()
        planned = isinstance(stream, PlanStream)
        return Manifest(
            source="plan" if planned else REPLAY,
            plan=stream.plan.name if isinstance(stream, PlanStream) else stream.file.name,
            digest=stream.plan.digest if isinstance(stream, PlanStream) else stream.digest,
            seed=stream.plan.seed if isinstance(stream, PlanStream) else None,
            origin=stream.origin if isinstance(stream, PlanStream) else None,
            text=stream.plan.text if isinstance(stream, PlanStream) else None,
            data=None if planned or self.data is None else str(Path(self.data).resolve()),
            table=self.table,
            topic=self.topic,
            records=sent.records,
            summary=sent.summary,
            poison=dict(sorted(sent.poison.items())),
            sent={
                "planned": sent.planned,
                "produced": sent.produced,
                "acknowledged": sent.acknowledged,
                "refused": sent.refused,
                "backpressured": sent.backpressured,
                "backpressure_seconds": round(sent.backpressure_seconds, 3),
                **more,
            },
            exact=sent.problem is None and not sent.refused and sent.acknowledged == sent.produced,
        )


@lru_cache(maxsize=1)
def _replay(file: Path, rate: float, table: Table) -> ReplayStream:
    """Read once a process: nothing of it depends on when it is sent."""
    return ReplayStream(file, rate, table)


def read_request(options: Namespace) -> LoadRequest:
    """Of the options of `ledgerops load`, of which `plan` must be there. Raises UserError where they do not fit."""

    def given(name: str, default: Any = None) -> Any:
        return getattr(options, name, default) or default

    servers, to = given("bootstrap_servers"), given("to")
    if (servers is None) == (to is None):
        raise UserError("no target; give either --bootstrap-servers HOST:PORT or --to FOLDER")
    if to is not None and (given("kafka_config") or given("topic_prefix")):
        raise UserError("--kafka-config and --topic-prefix are for Kafka, not for --to")
    if given("sample_every") and not given("samples"):
        raise UserError("--sample-every needs --samples FILE")
    order = LoadRequest(
        plan=options.plan,
        table=given("table", "transactions"),
        servers=servers,
        config=_text(given("kafka_config")),
        prefix=given("topic_prefix", ""),
        to=_text(to),
        at_once=given("at_once", False),
        samples=_text(given("samples")),
        sample_every=given("sample_every"),
    )
    scale = given("rate_scale")
    if options.plan == REPLAY:
        data = given("data") or os.environ.get("LEDGEROPS_DATA")
        if not data:
            raise UserError("nothing to replay; give --data FOLDER, or set LEDGEROPS_DATA, with transactions.csv")
        order = replace(order, data=str(data), rate=REPLAY_RATE * (scale or 1.0))
    else:
        if given("data") is not None:
            raise UserError("--data is for replay; a plan generates its own rows")
        plan = load_plan(options.plan, scale)
        order = replace(order, plan=plan.name, text=plan.text)
    if order.rate > MAX_RECORDS_PER_SECOND:
        raise UserError(f"a replay of {order.rate:g} rows a second; give a smaller --rate-scale, or --at-once")
    return _limited(order, given("records"), given("duration"))


def _limited(order: LoadRequest, records: int | None, duration: float | None) -> LoadRequest:
    """With how many records it sends, and when its schedule begins. Raises UserError where it would not end."""
    stream = order.stream()
    limits = [stream.total, records, None if duration is None else stream.due(duration)]
    last = min((limit for limit in limits if limit is not None), default=None)
    if last is not None and last > MOST_RECORDS:
        raise UserError("too many records for one load; reduce --records, --duration or --rate-scale")
    origin = time.time()
    if order.at_once and order.text is not None:
        # as if it had been sent until now: rows from the future would move every watermark with them
        if last is None:
            raise UserError(
                "this plan never ends, and --at-once ignores its schedule; add --records N or --duration TIME"
            )
        origin -= float(stream.due_time(np.array([last - 1]))[0]) if last else 0.0
        if origin < 0:
            raise UserError(
                "at this rate the records would start before 1970; give a larger --rate-scale or fewer --records"
            )
    return replace(order, records=last, origin=round(origin, 3))


def _text(path: Path | str | None) -> str | None:
    return None if path is None else str(path)
