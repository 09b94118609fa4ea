"""A request to send a load: what, where and how, as plain values that can be sent to other processes."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from ledgerops.errors import UserError
from ledgerops.ledger.plan.manifest import MAX_RECORDS, Manifest
from ledgerops.ledger.plan.plan import load_plan, parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream, ReplayStream, Table
from ledgerops.ledger.plan.sections import MAX_RECORDS_PER_SECOND
from ledgerops.ledger.sources.csv_file import data_folder
from ledgerops.ledger.sources.kafka import TOPICS
from ledgerops.load.generator.accounting import SentCounts
from ledgerops.load.generator.latency_samples import Sampler, every, part_of
from ledgerops.load.generator.target import ALL, Share, Target

REPLAY = "replay"
REPLAY_RATE = 500.0  # records a second, as in a replay of `ledgerops run`


@dataclass(frozen=True, kw_only=True)
class LoadRequest:
    """What `read_request` makes of a command's options. A plan is carried as text, a replayed file by its path."""

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
    ) -> Target:
        """The target, ready to take records. Raises UserError if it cannot be reached or written to."""
        if self.to is not None:
            from ledgerops.load.generator.landing import LandingTarget

            name = REPLAY if self.text is None else f"load-{round(self.origin * 1000)}"
            return LandingTarget(Path(self.to), self.table, name if share == ALL else f"{name}-{share.number}")
        from ledgerops.common.kafka import read_client
        from ledgerops.load.generator.kafka import KafkaTarget

        assert self.servers is not None and self.topic is not None
        client = read_client(self.servers, None if self.config is None else Path(self.config))
        return KafkaTarget(client, self.topic, partitions, wait, say)

    def sampler(self, stream: PlanStream | ReplayStream, share: Share = ALL) -> Sampler | None:
        """Keeps the times of some records, in a file for each sender; None without --samples."""
        if self.samples is None:
            return None
        file = Path(self.samples)
        if share != ALL:
            file = part_of(file, share.number)
        return Sampler(every(stream, self.records), file, self.at_once)

    def begins(self, after: float = 0.0) -> LoadRequest:
        """The same with a schedule that starts `after` seconds from now; with --at-once the start stays in the past."""
        return self if self.at_once else replace(self, origin=round(time.time() + after, 3))

    @property
    def where(self) -> str:
        """The target as a person reads it."""
        return f"{self.to}/{self.table}" if self.to is not None else f"{self.topic} at {self.servers}"

    def manifest(self, sent: SentCounts, **more: Any) -> Manifest:
        """The manifest of what was sent. `more` is added to its field `sent`."""
        stream = self.stream()
        origin: dict[str, Any]
        if isinstance(stream, PlanStream):
            plan = stream.plan
            origin = {"source": "plan", "plan": plan.name, "digest": plan.digest, "seed": plan.seed, "text": plan.text}
            origin["origin"] = stream.origin
        else:
            origin = {"source": REPLAY, "plan": stream.file.name, "digest": stream.digest}
            origin["data"] = None if self.data is None else str(Path(self.data).resolve())
        return Manifest(
            **origin,
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
    """Reads the file once a process: nothing of it depends on when it is sent."""
    return ReplayStream(file, rate, table)


def read_request(options: Namespace) -> LoadRequest:
    """The request in the options of `ledgerops load`; only `plan` is required. Raises UserError if they contradict."""

    def given(name: str, default: Any = None) -> Any:
        return getattr(options, name, default) or default

    servers, to = given("bootstrap_servers"), given("to")
    if (servers is None) == (to is None):
        raise UserError("no target; give either --bootstrap-servers HOST:PORT or --to FOLDER")
    if to is not None and (given("kafka_config") or given("topic_prefix")):
        raise UserError("--kafka-config and --topic-prefix are for Kafka, not for --to")
    request = LoadRequest(
        plan=options.plan,
        table=given("table", "transactions"),
        servers=servers,
        config=_text(given("kafka_config")),
        prefix=given("topic_prefix", ""),
        to=_text(to),
        at_once=given("at_once", False),
        samples=_text(given("samples")),
    )
    scale = given("rate_scale")
    if options.plan == REPLAY:
        data = given("data") or data_folder()
        if not data:
            raise UserError("nothing to replay; give --data FOLDER, or set LEDGEROPS_DATA, with transactions.csv")
        request = replace(request, data=str(data), rate=REPLAY_RATE * (scale or 1.0))
    else:
        if given("data") is not None:
            raise UserError("--data is for replay; a plan generates its own rows")
        plan = load_plan(options.plan, scale)
        request = replace(request, plan=plan.name, text=plan.text)
    if request.rate > MAX_RECORDS_PER_SECOND:
        raise UserError(f"a replay of {request.rate:g} rows a second; give a smaller --rate-scale, or --at-once")
    return _limited(request, given("records"), given("duration"))


def _limited(request: LoadRequest, records: int | None, duration: float | None) -> LoadRequest:
    """The request with its number of records and its start. Raises UserError if it would send without end."""
    stream = request.stream()
    limits = [stream.total, records, None if duration is None else stream.due(duration)]
    last = min((limit for limit in limits if limit is not None), default=None)
    if last is not None and last > MAX_RECORDS:
        raise UserError("too many records for one load; reduce --records, --duration or --rate-scale")
    origin = time.time()
    if request.at_once and request.text is not None:
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
    return replace(request, records=last, origin=round(origin, 3))


def _text(path: Path | str | None) -> str | None:
    return None if path is None else str(path)
