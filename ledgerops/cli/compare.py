"""Compares queries before and after a change: better, worse, no effect, or cannot tell.

Takes two recordings (or Spark event logs, or exporter URLs), or one of them and the time of the change. Compares
batches with similar row counts. The statistics account for correlation between successive batches and for the number
of measures: when nothing changed, fewer than one comparison in twenty reports a difference. The first 30 s of each run
are skipped. Of a query that was in trouble before the change it also says what was advised for it, and whether the harm
has ended since.

Exit code: 0 nothing is worse, 1 something is worse, 2 could not compare.

Examples:
    ledgerops compare runs/monday/recording runs/tuesday/recording
    ledgerops compare http://127.0.0.1:9464 --change-at 2026-11-21T08:30:00Z --query daily_counts
"""

import argparse
import json
import os
import sys

from ledgerops.cli.input_args import instant
from ledgerops.config import load
from ledgerops.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("before", metavar="BEFORE", help="a recording, event log or exporter URL, as for diagnose")
    add("after", metavar="AFTER", nargs="?", help="the same, recorded after the change")
    add("--change-at", metavar="TIME", help="time of the change, when BEFORE covers both sides of it")
    add("--query", metavar="NAME", help="only this query")
    add("--json", action="store_true", help="print the comparison as JSON and nothing else")


def run(args: argparse.Namespace) -> int:
    from ledgerops.analysis.compare_report import comparison, text

    if (args.after is None) == (args.change_at is None):
        raise UserError("give two recordings to compare, or one and the time of the change with --change-at")
    at = instant("--change-at", args.change_at)
    found = comparison(args.before, args.after or args.before, args.query, at, args.change_at, load())
    if args.json:
        print(json.dumps(found))
    else:
        sys.stdout.write(text(found, sys.stdout.isatty() and not os.environ.get("NO_COLOR")))
    verdicts = {query["verdict"] for query in found["queries"]}
    return 2 if verdicts <= {"cannot tell"} else int("worse" in verdicts)
