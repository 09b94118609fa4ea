"""Names the root cause of each query's problem, with the numbers that prove it, and says what to do about it.

Reads a running exporter, a recording, a folder of recordings, or a Spark event log (file or rolling folder, plain or
zstd). A running exporter answers how it is now, and what ended in the last hour, as far as its memory goes: it keeps
8 MiB of records, such as ten minutes of four queries with a batch a second. A recording or event log is answered with
its incidents: what went wrong, from when to when, and how it ended. --at diagnoses a past moment, --since lists what
ended after a moment. --timeline shows how an incident developed: what started when, and what explains it.

The setting `mute` names rules that are listed as muted and count for nothing else; a running exporter's own are muted
as well. Results older than `freshness_objective_seconds` are too old; a running exporter's own setting counts instead.

Exit code: 0 nothing found at --fail-on or above, 1 something found (of a file also what has ended), 2 could not read
the source. --watch runs until Ctrl-C and exits with the code of the last diagnosis.

Examples:
    ledgerops diagnose
    ledgerops diagnose run/recording --query daily_counts --at 2026-11-21T08:30:00Z
    ledgerops diagnose eventlog_v2_app-1 --json | python -m json.tool
    ledgerops diagnose --since 2h --timeline
    ledgerops diagnose --watch 10
    ledgerops diagnose run/recording --html report.html
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerops.cli import input_args
from ledgerops.cli.arg_types import seconds
from ledgerops.cli.live_redraw import Redraw
from ledgerops.common.shutdown import Stop
from ledgerops.config import load
from ledgerops.errors import UserError, cannot_write
from ledgerops.model.finding import SEVERITIES

if TYPE_CHECKING:
    from ledgerops.analysis.session import Investigation, Moment

WATCH_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    input_args.add_arguments(parser)
    add("--since", metavar="TIME|LENGTH",
        help="also list findings that ended since this time, or within this duration (90s, 15m, 2h, 1d)")  # fmt: skip
    add(
        "--trigger",
        metavar="TIME",
        type=seconds,
        help="trigger interval (2s, 1m), where it is not recorded, as in an event log; with --query of one query",
    )
    add("--html", metavar="FILE", help="also write a report with plots as a single HTML file")
    add("--timeline", action="store_true", help="show what started when, and what followed from it")
    add("--watch", metavar="SECONDS", nargs="?", type=seconds, const=WATCH_SECONDS,
        help=f"repeat every SECONDS (default {WATCH_SECONDS:.0f}) until Ctrl-C")  # fmt: skip
    add("--min-severity", choices=SEVERITIES, default="info", help="hide findings below this severity (default info)")
    add("--fail-on", choices=SEVERITIES, default="warning",
        help="exit with code 1 at this severity or above (default warning)")  # fmt: skip
    add("-v", "--verbose", action="store_true", help="all evidence, further steps, and why other causes are ruled out")
    add("--json", action="store_true", help="print the diagnosis document and nothing else")


def run(args: argparse.Namespace) -> int:
    from ledgerops.analysis.session import Investigation
    from ledgerops.cli.reading_line import followed

    if args.watch is not None and args.at is not None:
        raise UserError("--watch cannot be combined with --at: a past moment does not change")
    if args.watch is not None and args.html is not None:
        raise UserError("--watch cannot be combined with --html: the report is written once")
    investigation = Investigation(
        input_args.place(args),
        args.query,
        input_args.instant("--at", args.at),
        _since(args.since),
        with_timeline=args.timeline or args.html is not None,
        plots=args.html is not None,
        trigger_interval=args.trigger,
        live=args.watch is not None,
        config=load(),
    )
    if args.watch is not None:
        stop = Stop()
        with stop.on_signals():
            return watch(investigation, args, stop)
    found = investigation.diagnose(time.time(), lambda seen: followed(seen, sys.stderr))
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
    print(f"wrote {path}", file=sys.stderr)


def watch(investigation: Investigation, args: argparse.Namespace, stop: Stop) -> int:
    """Repeats until Ctrl-C. An exporter that does not answer is reported and retried, except at the first time."""
    screen = Redraw(sys.stdout, in_place=not args.json)
    screen.show(_shown(found := investigation.diagnose(time.time()), args))
    code = _code(found, args)
    try:
        while not stop.wait(args.watch):
            try:
                found = investigation.diagnose(time.time())
            except UserError as error:
                code = 2
                screen.note(f"ledgerops: {error} (retrying in {args.watch:g} s)")
            else:
                code = _code(found, args)
                screen.show(_shown(found, args))
    except KeyboardInterrupt:
        pass
    finally:
        screen.close()
    return code


def _shown(found: dict[str, Any], args: argparse.Namespace) -> str:
    from ledgerops.diagnosis.report import text

    if args.json:
        return json.dumps(_only(found, args.min_severity)) + "\n"
    terminal = sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns if terminal else None
    return text(found, terminal and not os.environ.get("NO_COLOR"), args.min_severity, columns, args.verbose)


def _code(found: dict[str, Any], args: argparse.Namespace) -> int:
    from ledgerops.diagnosis.report import worst

    severity = worst(found)
    return int(severity is not None and SEVERITIES.index(severity) >= SEVERITIES.index(args.fail_on))


def _since(text: str | None) -> Moment | None:
    from ledgerops.analysis.session import Moment
    from ledgerops.model.spark_progress import parse_instant

    if text is None:
        return None
    try:
        return Moment(ago=seconds(text))
    except argparse.ArgumentTypeError:
        instant = parse_instant(text)
    if instant is None:
        raise UserError(f"--since {text}: neither a time like 2026-11-21T08:30:00Z nor a duration like 15m")
    return Moment(instant)


def _only(found: dict[str, Any], lowest: str) -> dict[str, Any]:
    """The document without findings below a severity."""
    shown = SEVERITIES[SEVERITIES.index(lowest) :]

    def only(told: dict[str, Any], *kinds: str) -> dict[str, Any]:
        return told | {
            kind: [each for each in told[kind] if each["severity"] in shown] for kind in kinds if kind in told
        }

    kinds = ("root_causes", "findings", "ended", "ended_lately", "muted")
    return only(found, "incidents", "ended_lately") | {"queries": [only(query, *kinds) for query in found["queries"]]}
