"""Says what is wrong with the queries, why, and what to do about it; with the numbers that prove it.

Reads a running exporter, or what was recorded: a recording, a folder of them, or a Spark event log (file or rolling
folder, plain or zstd). With --at it tells what was wrong at a past moment, with --since also what was wrong in between
and is over, with --timeline how it came about: what began when, what explains it, what ended.

Exit code: 0 nothing found at --fail-on or above, 1 something found, 2 could not look. With --watch, which goes on until
Ctrl-C, it is that of the last look.

Examples:
    ledgerops diagnose
    ledgerops diagnose --from run/recording --query daily_counts --at 2026-11-21T08:30:00Z
    ledgerops diagnose --from eventlog_v2_app-1 --json | python -m json.tool
    ledgerops diagnose --since 2h --timeline
    ledgerops diagnose --watch 10
    ledgerops diagnose --from run/recording --html report.html
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ledgerops.analysis.session import Investigation, Moment
from ledgerops.cli import input_args
from ledgerops.cli.arg_types import seconds
from ledgerops.cli.live_redraw import Redraw
from ledgerops.common.shutdown import Stop
from ledgerops.diagnosis.report import text, worst
from ledgerops.errors import UserError, cannot_write
from ledgerops.model.finding import SEVERITIES
from ledgerops.model.spark_progress import parse_instant

WATCH_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    input_args.add_arguments(parser)
    parser.add_argument(
        "--since",
        metavar="TIME|LENGTH",
        help="what was active or began since this moment, or within such a time (90s, 15m, 2h, 1d), what is over, too",
    )
    parser.add_argument("--html", metavar="FILE", help="also write the report with its plots as one HTML file")
    parser.add_argument("--timeline", action="store_true", help="tell the story: what began when, and what followed")
    parser.add_argument(
        "--watch",
        metavar="SECONDS",
        nargs="?",
        type=seconds,
        const=WATCH_SECONDS,
        help=f"look again and again, every so many seconds (default {WATCH_SECONDS:.0f}), until Ctrl-C",
    )
    parser.add_argument(
        "--min-severity", choices=SEVERITIES, default="info", help="leave out findings below this (default info)"
    )
    parser.add_argument(
        "--fail-on", choices=SEVERITIES, default="warning", help="exit with 1 from this severity on (default warning)"
    )
    parser.add_argument("--json", action="store_true", help="print the diagnosis document and nothing else")


def run(args: argparse.Namespace) -> int:
    if args.watch is not None and args.at is not None:
        raise UserError("--watch and --at exclude each other: a past moment does not change")
    if args.watch is not None and args.html is not None:
        raise UserError("--watch and --html exclude each other: a file is not looked at again and again")
    investigation = Investigation(
        args.place,
        args.query,
        input_args.instant("--at", args.at),
        _since(args.since),
        story=args.timeline or args.html is not None,
        plots=args.html is not None,
    )
    if args.watch is not None:
        stop = Stop()
        with stop.on_signals():
            return watch(investigation, args, stop)
    found = investigation.look(time.time())
    if args.html is not None:
        _write(Path(args.html), investigation.page(found))
        if not args.timeline:
            del found["timeline"]
    sys.stdout.write(_shown(found, args))
    return _code(found, args)


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, "utf-8")
    except OSError as error:
        raise cannot_write(path, error) from None


def watch(investigation: Investigation, args: argparse.Namespace, stop: Stop) -> int:
    """Looks until Ctrl-C. An exporter that does not answer is said and asked again, but for the very first look."""
    screen = Redraw(sys.stdout, in_place=not args.json)
    screen.show(_shown(found := investigation.look(time.time()), args))
    code = _code(found, args)
    try:
        while not stop.wait(args.watch):
            try:
                found = investigation.look(time.time())
            except UserError as error:
                code = 2
                screen.note(f"ledgerops: {error} (looking again in {args.watch:g} s)")
            else:
                code = _code(found, args)
                screen.show(_shown(found, args))
    except KeyboardInterrupt:
        pass
    finally:
        screen.close()
    return code


def _shown(found: dict[str, Any], args: argparse.Namespace) -> str:
    if args.json:
        return json.dumps(_only(found, args.min_severity)) + "\n"
    return text(found, sys.stdout.isatty() and not os.environ.get("NO_COLOR"), args.min_severity)


def _code(found: dict[str, Any], args: argparse.Namespace) -> int:
    severity = worst(found)
    return int(severity is not None and SEVERITIES.index(severity) >= SEVERITIES.index(args.fail_on))


def _since(told: str | None) -> Moment | None:
    if told is None:
        return None
    try:
        return Moment(ago=seconds(told))
    except argparse.ArgumentTypeError:
        instant = parse_instant(told)
    if instant is None:
        raise UserError(f"--since {told}: neither a time like 2026-11-21T08:30:00Z nor a length of time like 15m")
    return Moment(instant)


def _only(found: dict[str, Any], lowest: str) -> dict[str, Any]:
    """The document without findings below a severity."""
    shown = SEVERITIES[SEVERITIES.index(lowest) :]
    kinds = ("root_causes", "findings", "ended")
    queries = [
        query | {key: [each for each in query[key] if each["severity"] in shown] for key in kinds if key in query}
        for query in found["queries"]
    ]
    return found | {"queries": queries}
