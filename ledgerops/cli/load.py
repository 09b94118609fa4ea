"""Sends the records of a load plan, or the real transactions, to Kafka or to a landing folder.

The load is open loop: the plan's schedule decides when each record is sent, however slow the broker is. `--at-once`
sends as fast as possible instead. Records wait while the broker is unreachable. The load stops after --records or
--duration, at the end of a replayed file, when the last phase of the plan has rate zero, or on Ctrl-C. It writes a
manifest of exactly what was sent, for `ledgerops verify`. Create the topics first with `ledgerops topics`.

`--workers N` splits one plan across N processes: worker k sends every N-th record, starting with record k, so together
they send exactly the records of the plan, and one manifest covers all. `locust -f load/locustfile.py` does the same
with locust's web interface and workers on other machines:
https://github.com/ledgerops/ledgerops/blob/main/docs/load.md.

The load checks itself at the end. It is INVALID if less than 99 % of the records that were due were acknowledged, or if
the 99th percentile of lateness is above --late-budget (not with --at-once, which has no schedule). An INVALID load
measures the generator or the broker, not the jobs.

Exit code: 0 every record was acknowledged and the load is valid, 1 a record was rejected or unconfirmed or the load is
INVALID, 2 it could not run.

Examples:
    ledgerops load default --bootstrap-servers localhost:9092 --duration 60
    ledgerops load burst --bootstrap-servers localhost:9092 --duration 2m --samples runs/samples.jsonl
    ledgerops load default --bootstrap-servers localhost:9092 --duration 60 --rate-scale 300 --workers 2
    ledgerops load replay --data ../shared/data --bootstrap-servers localhost:9092 --at-once
    ledgerops load whale --to landing --records 100000 --at-once --manifest whale.json
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerops.cli.arg_types import factor, port, seconds, whole
from ledgerops.common.format import counted

if TYPE_CHECKING:
    from ledgerops.common.shutdown import Stop
    from ledgerops.load.generator.accounting import SentCounts
    from ledgerops.load.generator.metrics import LoadMetrics
    from ledgerops.load.generator.request import LoadRequest

    Say = Callable[[str], None]
    Show = Callable[[int], None]  # records that were handed over

TABLES = ("transactions", "debits", "credits", "ad_events")
SHOW_SECONDS = 0.2
LATE_BUDGET = 0.05  # as in load.generator.validity, which `--help` must not import


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("plan", metavar="PLAN|replay", help="name or file of a load plan, or replay to send transactions.csv")
    add("--bootstrap-servers", metavar="HOST:PORT", help="Kafka brokers to send to")
    add("--kafka-config", type=Path, metavar="FILE", help="properties file of the Kafka client (security)")
    add("--topic-prefix", default="", metavar="PREFIX", help="prefix of the topic name")
    add("--to", type=Path, metavar="FOLDER", help="write JSON lines to FOLDER/TABLE instead of Kafka")
    add("--table", choices=TABLES, default="transactions", help="table to send (default transactions)")
    add("--data", type=Path, metavar="FOLDER", help="folder with transactions.csv (default $LEDGEROPS_DATA)")
    add("--duration", type=seconds, metavar="TIME", help="stop after this time: 90, 2m, 1h")
    add("--records", type=whole, metavar="N", help="send the first N records of the stream")
    add("--rate-scale", type=factor, metavar="FACTOR", help="multiply the plan's rates by this, not by its scale")
    add("--at-once", action="store_true", help="ignore the schedule and send as fast as possible")
    add("--manifest", type=Path, metavar="FILE", help="where to write the manifest (default runs/manifest.json)")
    add("--late-budget", type=seconds, metavar="TIME", default=LATE_BUDGET,
        help="INVALID if p99 lateness is above this (default 50ms)")  # fmt: skip
    add("--samples", type=Path, metavar="FILE", help="write timestamps of sampled records to this file (JSON lines)")
    add("--workers", type=whole, default=1, metavar="N", help="split the load across N processes (default 1)")
    add(
        "--metrics-port",
        type=port,
        metavar="PORT",
        help="serve the generator's own metrics on this port, at the address of the setting host (default 127.0.0.1)",
    )


def run(args: argparse.Namespace) -> int:
    from ledgerops.common.shutdown import Stop
    from ledgerops.load.generator.request import read_request

    request = read_request(args)
    stop = Stop()
    with stop.on_signals():
        return _run(args, request, stop)


def _run(args: argparse.Namespace, request: LoadRequest, stop: Stop) -> int:
    from ledgerops.config import load
    from ledgerops.load.generator.metrics import LoadMetrics, serving
    from ledgerops.load.generator.report import conclude, failure, manifest_path, succeeded

    file = manifest_path(args.manifest, args.table)
    metrics = LoadMetrics(request.plan, args.late_budget)
    host = load().host if args.metrics_port is not None else ""
    with _progress(request.records) as (show, say), serving(args.metrics_port, metrics, say, host):
        stream = request.stream()
        if rejected := getattr(stream, "rejected", 0):
            say(f"skipped {counted(rejected, 'unreadable row')} of transactions.csv")
        if args.workers == 1:
            request, sent, legs = _send_alone(request, stop, metrics, say, show)
        else:
            request, sent, legs = _send_with_workers(request, args.workers, stop, metrics, say, show)
    manifest = conclude(request, sent, legs, args.late_budget, file)
    if why := failure(manifest, sent):
        print(why, file=sys.stderr)
    return 0 if succeeded(manifest) else 1


def _send_alone(
    request: LoadRequest, stop: Stop, metrics: LoadMetrics, say: Say, show: Show
) -> tuple[LoadRequest, SentCounts, Mapping[str, Any]]:
    """Sends the load from this process: the request as it began, what was sent, and the legs of sampled records."""
    from ledgerops.load.generator.pacer import produce, settle

    stream = request.stream()
    stream.rows(0, 1)  # makes its tables before the schedule begins
    target = request.target(stream.partitions, stop.wait, say)
    stop.calm()
    request = request.begins()  # reaching the target took time
    stream = request.stream()
    sampler = request.sampler(stream)

    def publish(sent: SentCounts) -> None:
        metrics.publish(sent)
        show(sent.produced)

    sent = produce(
        stream, target, records=request.records, at_once=request.at_once, wait=stop.wait, show=publish, sampler=sampler
    )
    settle(sent, target)
    if sampler is not None:
        sampler.close()
    return request, sent, {} if sampler is None else sampler.legs


def _send_with_workers(
    request: LoadRequest, workers: int, stop: Stop, metrics: LoadMetrics, say: Say, show: Show
) -> tuple[LoadRequest, SentCounts, Mapping[str, Any]]:
    """The same from several processes."""
    from ledgerops.load.generator.latency_samples import gather
    from ledgerops.load.generator.local_senders import run_senders

    def publish(counts: Mapping[int, SentCounts]) -> None:
        for number, sent in counts.items():
            metrics.publish(sent, number)
        show(sum(sent.produced for sent in counts.values()))

    stop.calm()
    coordinator = run_senders(request, workers, lambda: stop.asked, say, publish)
    if not coordinator.begun:
        raise KeyboardInterrupt
    if request.samples is not None:
        gather(Path(request.samples), workers)
    return coordinator.request, coordinator.result(), coordinator.legs()


@contextmanager
def _progress(records: int | None) -> Iterator[tuple[Show, Say]]:
    """Two functions: one shows how far it is, one says a sentence; both on stderr, the first on a terminal only."""
    from rich.progress import TextColumn, TimeElapsedColumn

    from ledgerops.cli.progress import bar

    shown = bar(TextColumn("{task.fields[rate]}"), TimeElapsedColumn())
    shown_at = 0.0
    task = shown.add_task("sending", total=records, rate="")
    began = time.monotonic()

    def show(produced: int) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at >= SHOW_SECONDS:
            shown_at = now
            shown.update(task, completed=produced, rate=f"{produced / (now - began):,.0f}/s")

    def say(text: str) -> None:
        shown.console.print(f"ledgerops: {text}", markup=False, highlight=False)

    with shown:
        yield show, say
