"""Sends the records of a load plan, or the bank's real transactions, to Kafka or into a landing folder.

The plan's schedule decides when a record is sent, whatever the broker does; `--at-once` sends as fast as it can. While
a broker is away, records wait. It ends after --records or --duration, with the file of a replay, with a plan whose last
phase is silent, or on Ctrl-C, and leaves a manifest of exactly what was sent, for `ledgerops verify`. The topics are
made by `ledgerops topics`.

Exit code: 0 when every record was acknowledged, 1 when one was refused or its fate is unknown, 2 when it could not run.

Examples:
    ledgerops load default --bootstrap-servers localhost:9092 --duration 60
    ledgerops load replay --data ../shared/data --bootstrap-servers localhost:9092 --at-once
    ledgerops load whale --to landing --records 100000 --at-once --manifest whale.json
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ledgerops.cli.values import factor, seconds, whole
from ledgerops.errors import UserError
from ledgerops.figures import clock, duration

if TYPE_CHECKING:
    from ledgerops.ledger.manifest import Manifest
    from ledgerops.ledger.stream import PlanStream, ReplayStream, Table
    from ledgerops.producing.pace import Sent, Target
    from ledgerops.stopping import Stop

REPLAY = "replay"
REPLAY_RATE = 500.0  # records a second, as in a replay of `ledgerops run`
TABLES = ("transactions", "debits", "credits", "ad_events")
SHOW_SECONDS = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "plan", metavar="PLAN|replay", help="a load plan's name or file, or replay for transactions.csv"
    )
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="send to Kafka here")
    parser.add_argument("--kafka-config", type=Path, metavar="FILE", help="properties of the Kafka client (security)")
    parser.add_argument("--topic-prefix", default="", metavar="PREFIX", help="before the name of the topic")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="write JSON lines to FOLDER/TABLE instead of Kafka")
    parser.add_argument("--table", choices=TABLES, default="transactions", help="what to send (default transactions)")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of transactions.csv (or LEDGEROPS_DATA)")
    parser.add_argument("--duration", type=seconds, metavar="TIME", help="send what is due in this time: 90, 2m, 1h")
    parser.add_argument("--records", type=whole, metavar="N", help="send the first N records of the stream")
    parser.add_argument("--rate-scale", type=factor, metavar="FACTOR", help="multiply every rate by this (default 1)")
    parser.add_argument("--at-once", action="store_true", help="send as fast as the target takes it")
    parser.add_argument(
        "--manifest", type=Path, metavar="FILE", help="where to write what was sent (default runs/manifest.json)"
    )


def run(args: argparse.Namespace) -> int:
    from ledgerops.stopping import Stop

    if (args.bootstrap_servers is None) == (args.to is None):
        raise UserError("where to? give --bootstrap-servers HOST:PORT or --to FOLDER, one of them")
    if args.to is not None and (args.kafka_config or args.topic_prefix):
        raise UserError("--kafka-config and --topic-prefix are for Kafka, not for --to")
    stop = Stop()
    with stop.on_signals():
        return _run(args, stop)


def _run(args: argparse.Namespace, stop: Stop) -> int:
    from ledgerops.producing.pace import produce

    file = args.manifest or _manifest_file(args.table)
    stream = _stream(args)
    records = _records(args, stream)
    with _progress(records) as (show, say):
        if rejected := getattr(stream, "rejected", 0):
            say(f"{rejected:,} rows of transactions.csv cannot be read and are not sent")
        target, topic = _target(args, stream, stop, say)
        stop.calm()
        sent = produce(stream, target, records=records, at_once=args.at_once, wait=stop.wait, show=show)
        target.close()
    manifest = _manifest(args, stream, sent, target, topic)
    manifest.write(file)
    return _sum_up(args, manifest, sent, target, file)


def _manifest_file(table: str) -> Path:
    return Path("runs") / ("manifest.json" if table == "transactions" else f"manifest-{table}.json")


def _stream(args: argparse.Namespace) -> PlanStream | ReplayStream:
    from ledgerops.ledger.plan import load_plan
    from ledgerops.ledger.stream import PlanStream, ReplayStream

    table = cast("Table", args.table)
    if args.plan == REPLAY:
        data = args.data or os.environ.get("LEDGEROPS_DATA")
        if not data:
            raise UserError("nothing to replay; give --data FOLDER, or set LEDGEROPS_DATA, with transactions.csv in it")
        return ReplayStream(Path(data) / "transactions.csv", REPLAY_RATE * (args.rate_scale or 1.0), table)
    if args.data is not None:
        raise UserError("--data is for replay; a plan makes its own rows")
    plan = load_plan(args.plan, args.rate_scale)
    origin = round(time.time(), 3)
    if args.at_once:
        # as if it had been sent until now: rows from the future would move every watermark with them
        found = PlanStream(plan, 0.0, table)
        last = _records(args, found)
        if last is None:
            raise UserError("this plan has no end, and --at-once no clock; add --records N or --duration TIME")
        import numpy as np

        origin = round(origin - (float(found.due_time(np.array([last - 1]))[0]) if last else 0.0), 3)
    return PlanStream(plan, origin, table)


def _records(args: argparse.Namespace, stream: PlanStream | ReplayStream) -> int | None:
    limits = [stream.total, args.records, None if args.duration is None else stream.due(args.duration)]
    return min((limit for limit in limits if limit is not None), default=None)


def _target(
    args: argparse.Namespace, stream: PlanStream | ReplayStream, stop: Stop, say: Callable[[str], None]
) -> tuple[Target, str | None]:
    if args.to is not None:
        from ledgerops.producing.landing import LandingTarget

        name = "replay" if args.plan == REPLAY else f"load-{round(getattr(stream, 'origin', 0.0) * 1000)}"
        return LandingTarget(args.to, args.table, name), None
    from ledgerops.kafkaclient import read_client
    from ledgerops.ledger.kafka import TOPICS
    from ledgerops.producing.kafka import KafkaTarget

    topic = args.topic_prefix + TOPICS[args.table]
    client = read_client(args.bootstrap_servers, args.kafka_config)
    return KafkaTarget(client, topic, stream.partitions, stop.wait, say), topic


def _manifest(
    args: argparse.Namespace, stream: PlanStream | ReplayStream, sent: Sent, target: Target, topic: str | None
) -> Manifest:
    from ledgerops.ledger.manifest import Manifest
    from ledgerops.ledger.stream import PlanStream

    if isinstance(stream, PlanStream):
        plan, digest = stream.plan.name, stream.plan.digest
        seed, origin, text = stream.plan.seed, stream.origin, stream.plan.text
    else:
        plan, digest, seed, origin, text = stream.file.name, stream.digest, None, None, None
    return Manifest(
        source="plan" if isinstance(stream, PlanStream) else REPLAY,
        plan=plan,
        digest=digest,
        seed=seed,
        origin=origin,
        text=text,
        table=args.table,
        topic=topic,
        records=sent.records,
        summary=sent.summary,
        poison=dict(sorted(sent.poison.items())),
        sent={"planned": sent.planned, "acknowledged": target.acknowledged, "refused": target.refused},
        exact=not target.refused and target.acknowledged == sent.planned,
    )


def _sum_up(args: argparse.Namespace, manifest: Manifest, sent: Sent, target: Target, file: Path) -> int:
    found, poison = manifest.summary, sum(manifest.poison.values())
    where = f"{args.to}/{args.table}" if args.to is not None else f"{manifest.topic} at {args.bootstrap_servers}"
    copies = found.all.rows - found.distinct.rows
    print(f"sent {manifest.plan} to {where} in {clock(sent.seconds)}")
    told = [f"{found.distinct.rows:,} distinct", f"{copies:,} copies", f"{found.late:,} late"]
    told += [f"{found.conflicting:,} with another amount"] if found.conflicting else []
    told += [f"{found.future:,} dated ahead"] if found.future else []
    print(f"rows      {found.all.rows:,} ({', '.join(told)})")
    if poison:
        print(f"poison    {poison:,} ({', '.join(f'{kind} {count:,}' for kind, count in manifest.poison.items())})")
    print(f"records   {sent.planned:,} sent, {target.acknowledged:,} acknowledged, {target.refused:,} refused")
    late = "" if args.at_once else f"; late by {duration(sent.late(0.5))} (median), {duration(sent.late(0.99))} (p99)"
    print(f"rate      {sent.planned / max(sent.seconds, 1e-9):,.0f} records a second{late}")
    print(f"manifest  {file}")
    if not manifest.exact:
        print(f"failed: {target.problem or 'not every record was acknowledged'}", file=sys.stderr)
    return 0 if manifest.exact else 1


@contextmanager
def _progress(records: int | None) -> Iterator[tuple[Callable[[Sent], None], Callable[[str], None]]]:
    """Two functions: one shows how far it is, one says a sentence; both on stderr, the first on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, soft_wrap=True)
    shown = [0.0]
    columns = (TextColumn("{task.description}"), BarColumn(30), TextColumn("{task.fields[rate]}"), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task("sending", total=records, rate="")
    began = time.monotonic()

    def show(sent: Sent) -> None:
        now = time.monotonic()
        if now - shown[0] >= SHOW_SECONDS:
            shown[0] = now
            bar.update(task, completed=sent.planned, rate=f"{sent.planned / (now - began):,.0f}/s")

    def say(text: str) -> None:
        console.print(f"ledgerops: {text}", markup=False, highlight=False)

    with bar:
        yield show, say
