"""Says what is wrong with the queries, why, and what to do about it; with the numbers that prove it.

Reads a running exporter, or what was recorded: a recording, a folder of them, or a Spark event log (file or rolling
folder, plain or zstd). With --at it tells what was wrong at a past moment.

Exit code: 0 nothing found at --fail-on or above, 1 something found, 2 could not look.

Examples:
    ledgerops diagnose
    ledgerops diagnose --from run/recording --query daily_counts --at 2026-11-21T08:30:00Z
    ledgerops diagnose --from eventlog_v2_app-1 --json | python -m json.tool
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from ledgerops.diagnosis.model import SEVERITIES
from ledgerops.diagnosis.report import document, text, worst
from ledgerops.errors import UserError
from ledgerops.offline import replay
from ledgerops.progress import parse_instant
from ledgerops.sources import EXPORTER, open_source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="place",
        metavar="PATH|URL",
        default=EXPORTER,
        help=f"a recording, a folder of them, a Spark event log, or an exporter's address (default {EXPORTER})",
    )
    parser.add_argument("--query", metavar="NAME", help="only this query")
    parser.add_argument("--at", metavar="TIME", help="as of this moment, ISO 8601; without a zone it is UTC")
    parser.add_argument(
        "--min-severity", choices=SEVERITIES, default="info", help="leave out findings below this (default info)"
    )
    parser.add_argument(
        "--fail-on", choices=SEVERITIES, default="warning", help="exit with 1 from this severity on (default warning)"
    )
    parser.add_argument("--json", action="store_true", help="print the diagnosis document and nothing else")


def run(args: argparse.Namespace) -> int:
    found = look(args.place, args.query, args.at)
    if args.json:
        json.dump(_only(found, args.min_severity), sys.stdout)
        print()
    else:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        sys.stdout.write(text(found, colour, args.min_severity))
    severity = worst(found)
    return int(severity is not None and SEVERITIES.index(severity) >= SEVERITIES.index(args.fail_on))


def look(place: str, query: str | None = None, at: str | None = None) -> dict[str, Any]:
    """The diagnosis document of a place. Raises UserError when there is nothing to judge."""
    moment = None
    if at is not None:
        moment = parse_instant(at)
        if moment is None:
            raise UserError(f"--at {at}: not a time; write it like 2026-11-21T08:30:00Z")
    source = open_source(place)
    replayed = replay(source.observations, moment, source.now)
    if replayed.bad:
        print(f"ledgerops: {replayed.bad} records of {source.name} could not be read; passed over", file=sys.stderr)
    queries = replayed.fleet.queries
    if not queries or replayed.at is None:
        when = f" before {at}" if at is not None else ""
        raise UserError(f"no query in {source.name}{when}; nothing can be said")
    if query is not None and query not in queries:
        raise UserError(f"no query {query!r} in {source.name}; there are {', '.join(sorted(queries))}")
    verdicts = [state.verdict for name, state in queries.items() if query in (None, name) and state.verdict is not None]
    return document(verdicts, replayed.at, source.name)


def _only(found: dict[str, Any], lowest: str) -> dict[str, Any]:
    """The document without findings below a severity."""
    shown = SEVERITIES[SEVERITIES.index(lowest) :]
    queries = [
        query | {key: [each for each in query[key] if each["severity"] in shown] for key in ("root_causes", "findings")}
        for query in found["queries"]
    ]
    return found | {"queries": queries}
