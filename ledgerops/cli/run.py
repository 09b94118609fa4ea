"""Runs the ledger's jobs on Spark with the observer attached, a live view in the terminal, and a live web page.

Without names it runs three of the jobs (state, windows and a join) on the embedded source. It stops after --duration,
on Ctrl-C or SIGTERM, and when a replayed file has been read. The next run of the same plan resumes where this one
stopped: no row is lost or repeated.

With --source kafka or files it reads topics or a landing folder instead, and writes records that cannot be parsed to
dead_letters. A checkpoint takes precedence over --start. After you change a job, the next run resumes with its state;
if the new job cannot read that state, the run says so: --fresh --start TIME starts over with empty state.

Short runs on this machine (at most ten minutes, or the default plan at its own rate) start the JVM with options that
save CPU time. Options of your own, in JDK_JAVA_OPTIONS or spark-defaults.conf, replace them.

Exit code: 0 stopped normally, 1 a query failed, 2 it could not run.

Examples:
    ledgerops run --duration 60
    ledgerops run daily_counts large_credits --plan default --fresh
    LEDGEROPS_DATA=../shared/data ledgerops run --duration 2m
    ledgerops run --source kafka --bootstrap-servers 127.0.0.1:9092 --until-caught-up
    ledgerops run sql --source kafka --bootstrap-servers kafka:9093 --kafka-config client.properties --sink postgres
    ledgerops run all --source kafka --bootstrap-servers kafka:9093 --accounts-url postgresql://ledger@db/ledger
    ledgerops run --source files --landing landing --fresh
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.cli import source_sink_args
from ledgerops.cli.arg_types import cores, factor, interval, port, rate, seconds, shared_folder, spark_property, whole
from ledgerops.cli.run_summary import announce, sum_up
from ledgerops.common.format import clock, counted
from ledgerops.errors import UserError, os_reason

TRIGGER_SECONDS = 5.0
# a backlog from before a restart is read in parts: one batch over all of it would show nothing for minutes
MAX_ROWS_AFTER_RESTART = 50_000
MAX_FILES_AFTER_RESTART = 100
QUICK_START_SECONDS = 600.0  # up to which a run is short

if TYPE_CHECKING:
    from ledgerops.common.shutdown import Stop
    from ledgerops.ledger.jobs.job import Job
    from ledgerops.ledger.run.app import ActiveRun, RunSetup
    from ledgerops.ledger.run.sink import RunSink
    from ledgerops.ledger.run.source import RunSource


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("jobs", nargs="*", metavar="JOB", help="jobs or groups to run, or all (see ledgerops jobs)")
    add("--duration", type=seconds, metavar="TIME", help="stop after this time: 90, 90s, 2m, 1h")
    add("--plan", metavar="NAME|PATH", help="load plan of the embedded source (see ledgerops plans)")
    add("--rate-scale", type=factor, metavar="FACTOR", help="multiply the plan's rates by this, not by its scale")
    add("--rate", type=rate, metavar="ROWS", help="rows per second of a replay (default 500; 0 reads all at once)")
    source_sink_args.add_arguments(parser)
    add("--accounts-url", metavar="URL",
        help="database for account_lookup: postgresql://user@host:port/database or sqlite:///path "
        "(default: a local file of the plan's or the bank's accounts)")  # fmt: skip
    add("--risk-url", metavar="URL", help="service for risk_scores, http://host:port (default: a local one)")
    add(
        "--trigger",
        type=interval,
        default=TRIGGER_SECONDS,
        metavar="TIME",
        help=f"trigger interval (default {TRIGGER_SECONDS:g}s); 0 starts each batch as soon as the last one ends",
    )
    add("--max-rows-per-trigger", type=whole, metavar="ROWS",
        help="maximum rows per batch (default: no limit; after a restart 50000)")  # fmt: skip
    add("--lateness", type=seconds, metavar="TIME",
        help="allowed lateness of jobs with a watermark, such as 48h (default 1m; 48h for a replay)")  # fmt: skip
    _add_surroundings(parser)


def _add_surroundings(parser: argparse.ArgumentParser) -> None:
    """Options that say when a run ends, where it runs and what it leaves behind."""
    add = parser.add_argument
    add("--until-caught-up", action="store_true",
        help="stop when every job has read what Kafka's topics or the landing folder held at the start")  # fmt: skip
    add("--port", type=port, help="port of the live page and metrics (default 9464, or any free port)")
    add("--out", type=shared_folder, default=Path("runs"), metavar="FOLDER", help="folder for runs (default runs)")
    add("--fresh", action="store_true", help="start over; the earlier run is kept under another name")
    add("--cores", type=cores, default=2, help="number of cores and of shuffle partitions (default 2)")
    add("--master", help="run on this Spark master instead of this machine; --out must be a folder that it shares")
    add("--executor-python", metavar="PATH", help="Python of the executors (default: PYSPARK_PYTHON, or this one)")
    add("--conf", type=spark_property, action="append", default=[], metavar="NAME=VALUE",
        help="Spark setting, such as spark.executor.memory=4g; may be repeated")  # fmt: skip
    add("--properties-file", type=Path, metavar="FILE", help="file with Spark settings, in the format of spark-submit")
    add("--no-view", action="store_true", help="print nothing while running")
    add("--record", action=argparse.BooleanOptionalAction, default=True,
        help="write a recording for ledgerops diagnose (default)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from ledgerops.common.shutdown import Stop

    setup = _setup(args)
    stop = Stop()
    try:
        with stop.on_signals():
            return _run(setup, args, stop)
    finally:
        setup.folder.close()


def _setup(args: argparse.Namespace) -> RunSetup:
    """Everything that can be refused before Spark starts. Raises UserError."""
    from ledgerops.ledger.run.app import RunSetup
    from ledgerops.ledger.run.cluster import read_properties
    from ledgerops.ledger.run.run_dir import RunDir
    from ledgerops.servers.process import port_problem

    conf = {**(read_properties(args.properties_file) if args.properties_file else {}), **dict(args.conf)}
    jobs, source, sink, jars = _jobs_and_endpoints(args)
    if args.port and (problem := port_problem(args.port)) is not None:
        raise UserError(
            f"cannot use port {args.port}: {os_reason(problem)}; give another --port, or 0 for any free port"
        )
    folder = RunDir(Path(os.path.realpath(args.out)), source.folder)
    wanted = replace(source.note(time.time()), sink=sink.kind, target=sink.target)
    note, resumed = folder.open(wanted, args.fresh)
    setup = RunSetup(
        jobs=jobs,
        source=source,
        folder=folder,
        note=note,
        resumed=resumed,
        cores=args.cores,
        master=args.master,
        port=args.port,
        trigger=args.trigger,
        max_rows=_bound(args, source, resumed),
        record=args.record,
        service_urls={
            name: url for name, url in (("accounts", args.accounts_url), ("risk", args.risk_url)) if url is not None
        },
        sink=sink,
        jars=jars,
        lateness=f"{args.lateness:.3f} seconds" if args.lateness else None,
        until_caught_up=args.until_caught_up,
        kafka_config=args.kafka_config,
        quick_start=_is_short(args),
        conf=conf,
        executor_python=args.executor_python,
    )
    try:
        sink.check(jobs, folder)
    except BaseException:
        folder.close()
        raise
    return setup


def _jobs_and_endpoints(args: argparse.Namespace) -> tuple[Sequence[Job], RunSource, RunSink, Sequence[Path]]:
    """The jobs, what they read from and write to, and the jars that this needs. Raises UserError."""
    from ledgerops.ledger.jobs import choose_jobs, left_out
    from ledgerops.ledger.run.source import describe_topics
    from ledgerops.servers.jars import connector_jars, delta_jars

    choose_jobs(args.jobs)  # a wrong name is said before anything is asked of a server
    source, sink = source_sink_args.endpoints(args)
    jobs = choose_jobs(args.jobs, source.offered)
    jars = connector_jars() if source.kafka is not None or sink.kind in ("kafka", "postgres") else []
    jars += delta_jars() if sink.kind == "delta" else []
    source = describe_topics(source, {name for job in jobs for name in job.inputs})
    for job in left_out(args.jobs, source.offered):
        print(f"skipping {job.name}: this source does not provide all of {', '.join(job.inputs)}", file=sys.stderr)
    return jobs, source, sink, jars


def _is_short(args: argparse.Namespace) -> bool:
    """Whether the run is on this machine and over in minutes, or needs little CPU time."""
    if args.master is not None:
        return False
    if args.duration is not None:
        return bool(args.duration <= QUICK_START_SECONDS)
    return args.source in (None, "embedded") and args.plan is None and args.rate_scale is None and args.rate is None


def _bound(args: argparse.Namespace, source: RunSource, resumed: bool) -> int | None:
    """The maximum that a batch reads: rows, or files of a landing folder."""
    files = source.kind == "files"
    asked: int | None = args.max_files_per_trigger if files else args.max_rows_per_trigger
    after_restart = MAX_FILES_AFTER_RESTART if files else MAX_ROWS_AFTER_RESTART
    return asked or (after_restart if resumed else None)


def _run(setup: RunSetup, args: argparse.Namespace, stop: Stop) -> int:
    from ledgerops.ledger.run.app import start_run

    began = time.monotonic()
    with _progress(f"starting Spark and {counted(len(setup.jobs), 'job')}"):
        try:
            running = start_run(setup)
        except Exception:
            if stop.signalled:  # Spark's JVM got the same signal, and ended first
                raise KeyboardInterrupt from None
            raise
    try:
        stop.calm()
        announce(running, time.monotonic() - began, args.start)
        try:
            _show(running, args, stop)
            status = running.status()
            cut = running.stop()
            refusal, failures = running.incompatible(), running.failures()
        except Exception:
            if not running.lost:
                raise
        if running.lost:  # where a query has failed, that is why
            died = {"Spark": f"its JVM has ended: killed, or out of memory; see {setup.folder.log}"}
            failures = {} if stop.signalled else died  # `timeout` and systemd send a signal to the JVM, too
            stop.ask("Spark has ended")
            status, cut, refusal = running.status(), [job.name for job in setup.jobs], None
        if refusal is not None:
            raise UserError(refusal)
        return sum_up(running, status, stop, cut, failures, time.monotonic() - began)
    finally:
        running.close()


def _show(running: ActiveRun, args: argparse.Namespace, stop: Stop) -> None:
    """The view, until the time is over, somebody asks to stop, or there is nothing left to do."""
    from rich.console import Console

    from ledgerops.cli import live_view

    began = time.monotonic()
    console = Console(soft_wrap=True)

    def title() -> str:
        passed = clock(time.monotonic() - began)
        until = f" of {clock(args.duration)}" if args.duration else ""
        return f"ledgerops  {running.setup.source}  {passed}{until}  {running.watch.url}/"

    def over(limit: float) -> bool:
        """Waits for `limit` seconds, less when the run is over before."""
        end = time.monotonic() + limit
        while not stop.asked:
            now = time.monotonic()
            if args.duration and now - began >= args.duration:
                stop.ask(f"reached --duration {clock(args.duration)}")
            elif running.incompatible() is not None:
                stop.ask("a job cannot read its state")
            elif running.over:
                stop.ask("Spark has ended" if running.lost else "no query is running")
            elif running.caught_up():
                stop.ask("caught up" if args.until_caught_up else "processed everything")
            elif now >= end:
                return False
            else:
                stop.wait(min(0.25, end - now))
        return True

    if args.no_view:
        while not over(3600.0):
            pass
    else:
        live_view.watch(running.status, title, over, console)


@contextmanager
def _progress(text: str) -> Iterator[None]:
    """A moving bar on the terminal's stderr while Spark starts, else one line."""
    from rich.console import Console
    from rich.progress import TimeElapsedColumn

    from ledgerops.cli.progress import bar

    # a copy of stderr: the original goes to Spark's log meanwhile
    with os.fdopen(os.dup(2), "w") as copy:
        console = Console(file=copy)
        if not console.is_terminal:
            console.print(f"{text} ...")
            yield
            return
        with bar(TimeElapsedColumn(), console=console) as shown:
            shown.add_task(text, total=None)
            yield
