"""Runs the ledger's jobs on Spark, watched, with a live view in the terminal and a live page.

Without names it runs six of the jobs, on the embedded source. It ends after --duration, on Ctrl-C or SIGTERM, and when
a replayed file is worked off. The next run of the same plan goes on where this one ended: no row is lost or repeated.

Exit code: 0 after a clean end, 1 when a query failed, 2 when it could not run.

Examples:
    ledgerops run --duration 60
    ledgerops run daily_counts large_credits --plan default --fresh
    LEDGEROPS_DATA=../shared/data ledgerops run --duration 2m
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerops.cli.values import factor, port, rate, seconds, whole
from ledgerops.errors import UserError
from ledgerops.figures import clock, duration

# six batches cost some 7 s of processor time (measured), which two cores have in 3.5 s
TRIGGER = 5.0
# what came due while nobody ran is taken in bites: one batch over all of it would show nothing for minutes
RESUMED_ROWS = 50_000

if TYPE_CHECKING:
    from ledgerops.running import Running, Setup
    from ledgerops.stopping import Stop


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="jobs or groups to run, or all (see ledgerops jobs)")
    parser.add_argument("--duration", type=seconds, metavar="TIME", help="end after this time: 90, 90s, 2m, 1h")
    parser.add_argument("--plan", metavar="NAME|PATH", help="load plan of the embedded source (see ledgerops plans)")
    parser.add_argument(
        "--rate-scale", type=factor, metavar="FACTOR", help="multiply every rate of the plan by this (default 1)"
    )
    parser.add_argument(
        "--rate", type=rate, metavar="ROWS", help="rows a second of a replay (default 500; 0 gives all at once)"
    )
    parser.add_argument(
        "--source",
        choices=("embedded", "replay"),
        help="where rows come from (default: replay of transactions.csv when LEDGEROPS_DATA is set, else embedded)",
    )
    parser.add_argument(
        "--accounts-url",
        metavar="URL",
        help="database that account_lookup asks: postgresql://user@host:port/database or sqlite:///path "
        "(default: a local file of the plan's or the bank's accounts)",
    )
    parser.add_argument(
        "--risk-url", metavar="URL", help="service that risk_scores asks, http://host:port (default: a local one)"
    )
    parser.add_argument(
        "--trigger", type=seconds, default=TRIGGER, metavar="TIME", help=f"trigger interval (default {TRIGGER:g}s)"
    )
    parser.add_argument(
        "--max-rows-per-trigger",
        type=whole,
        metavar="ROWS",
        help="the most rows that a batch reads (default: no limit; after a restart 50000)",
    )
    parser.add_argument("--port", type=port, help="port of the live page and the metrics (default 9464, or a free one)")
    parser.add_argument(
        "--out", type=Path, default=Path("runs"), metavar="FOLDER", help="where runs are kept (default runs)"
    )
    parser.add_argument("--fresh", action="store_true", help="begin anew; an earlier run of the plan is moved aside")
    parser.add_argument("--cores", type=whole, default=2, help="cores to use, and shuffle partitions (default 2)")
    parser.add_argument("--master", help="run on this Spark master instead of this machine's cores")
    parser.add_argument("--no-view", action="store_true", help="print nothing between start and end")
    parser.add_argument(
        "--record",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="keep a recording for ledgerops diagnose (default)",
    )


def run(args: argparse.Namespace) -> int:
    from ledgerops.stopping import Stop

    setup = _setup(args)
    stop = Stop()
    try:
        with stop.on_signals():
            return _run(setup, args, stop)
    finally:
        setup.folder.close()


def _setup(args: argparse.Namespace) -> Setup:
    """Everything that can be refused before Spark starts."""
    from ledgerops.feed import choose_feed
    from ledgerops.jobs import choose_jobs
    from ledgerops.runfolder import RunFolder
    from ledgerops.running import Setup

    jobs = choose_jobs(args.jobs)
    feed = choose_feed(args.source, args.plan, args.rate_scale, args.rate)
    if args.port:
        _check_port(args.port)
    folder = RunFolder(args.out.resolve(), feed.folder)
    note, resumed = folder.open(feed.note(time.time()), args.fresh)
    return Setup(
        jobs=jobs,
        feed=feed,
        folder=folder,
        note=note,
        resumed=resumed,
        cores=args.cores,
        master=args.master,
        port=args.port,
        trigger=args.trigger,
        max_rows=args.max_rows_per_trigger or (RESUMED_ROWS if resumed else None),
        record=args.record,
        service_urls={
            name: url for name, url in (("accounts", args.accounts_url), ("risk", args.risk_url)) if url is not None
        },
    )


def _check_port(wanted: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UserError(f"cannot use port {wanted}: {reason}; give another --port, or 0 for any free one") from None


def _run(setup: Setup, args: argparse.Namespace, stop: Stop) -> int:
    from ledgerops.running import begin

    began = time.monotonic()
    with _progress(f"starting Spark and {len(setup.jobs)} jobs"):
        running = begin(setup)
    try:
        stop.calm()
        _announce(running, time.monotonic() - began)
        _show(running, args, stop)
        status = running.status()
        cut = running.stop()
        return _sum_up(running, status, stop, cut, time.monotonic() - began)
    finally:
        running.close()


def _announce(running: Running, took: float) -> None:
    setup = running.setup
    names = [job.name for job in setup.jobs]
    what = f"{len(names)} jobs" if len(names) > 4 else ", ".join(names)
    print(f"live page {running.watch.url}/  metrics {running.watch.url}/metrics")
    print(f"{what} on {setup.feed}; Spark took {took:.0f} s to start")
    if setup.resumed:
        since = duration(time.time() - setup.note.origin)
        print(f"goes on where the last run ended (its clock began {since} ago; --fresh begins anew)")
    refused = running.refused()
    if refused:
        print(f"refused {refused:,} rows of the data files: see {_short(setup.folder.work / 'rejects.jsonl')}")
    print(f"everything goes to {_short(setup.folder.path)}; end it with Ctrl-C", flush=True)


def _show(running: Running, args: argparse.Namespace, stop: Stop) -> None:
    """The view, until the time is over, somebody asks to stop, or there is nothing left to do."""
    from rich.console import Console

    from ledgerops import terminal

    began = time.monotonic()
    console = Console(soft_wrap=True)

    def title() -> str:
        passed = clock(time.monotonic() - began)
        until = f" of {clock(args.duration)}" if args.duration else ""
        return f"ledgerops  {running.setup.feed}  {passed}{until}  {running.watch.url}/"

    def over(limit: float) -> bool:
        """Waits for `limit` seconds, less when the run is over before."""
        end = time.monotonic() + limit
        while not stop.asked:
            now = time.monotonic()
            if args.duration and now - began >= args.duration:
                stop.ask(f"{clock(args.duration)} are over")
            elif running.over:
                stop.ask("no query is left")
            elif running.dry():
                stop.ask("everything is worked off")
            elif now >= end:
                return False
            else:
                stop.wait(min(0.25, end - now))
        return True

    if args.no_view:
        while not over(3600.0):
            pass
    else:
        terminal.watch(running.status, title, over, console)


def _sum_up(running: Running, status: dict[str, Any], stop: Stop, cut: list[str], took: float) -> int:
    from ledgerops.terminal import clean, verdict_line

    setup, failures = running.setup, running.failures()
    print(f"\nended after {clock(took)}: {stop.reason}")
    for query in status["queries"]:
        print(clean(verdict_line(query)))
    for name, error in failures.items():
        print(f"failed: {name}: {clean(error)}", file=sys.stderr)
    if cut:
        print(f"stopped within a batch, which the next run repeats: {', '.join(cut)}")
    folder = setup.folder
    print(f"\noutput      {_short(folder.outputs)}/JOB (Parquet)")
    print(f"checkpoints {_short(folder.checkpoints)}/JOB")
    if setup.record:
        print(f"recording   {_short(folder.recording)}")
    print(f"Spark's log {_short(folder.log)}")
    follow = f"ledgerops diagnose --from {_short(folder.recording)}" if setup.record else "ledgerops run"
    print(f"\nnext: {follow}")
    return 1 if failures else 0


@contextmanager
def _progress(text: str) -> Iterator[None]:
    """A moving bar on the terminal's stderr while Spark starts, else one line."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # a copy of stderr: the original goes to Spark's log meanwhile
    with os.fdopen(os.dup(2), "w") as copy:
        console = Console(file=copy)
        if not console.is_terminal:
            console.print(f"{text} ...")
            yield
            return
        columns = (TextColumn("{task.description}"), BarColumn(30), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
            bar.add_task(text, total=None)
            yield


def _short(path: Path) -> str:
    """A path as it is shortest to type from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
