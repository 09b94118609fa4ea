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

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from ledgerops.cli.input_args import instant
from ledgerops.config import load
from ledgerops.errors import UserError, did_you_mean
from ledgerops.model.spark_progress import format_instant

if TYPE_CHECKING:
    from ledgerops.analysis.batch_samples import BatchSample

    Sides = tuple[dict[str, list[BatchSample]], dict[str, list[BatchSample]]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("before", metavar="BEFORE", help="a recording, event log or exporter URL, as for diagnose")
    add("after", metavar="AFTER", nargs="?", help="the same, recorded after the change")
    add("--change-at", metavar="TIME", help="time of the change, when BEFORE covers both sides of it")
    add("--query", metavar="NAME", help="only this query")
    add("--json", action="store_true", help="print the comparison as JSON and nothing else")


def run(args: argparse.Namespace) -> int:
    from ledgerops.analysis.compare import compare
    from ledgerops.analysis.compare_report import document, text

    if (args.after is None) == (args.change_at is None):
        raise UserError("give two recordings to compare, or one and the time of the change with --change-at")
    before, after = _sides(args.before, args.after, args.change_at)
    known = sorted({*before, *after})
    if not known:
        raise UserError(f"no query in {args.before} ran for long enough to compare")
    if args.query is not None and args.query not in known:
        every = f"there are {', '.join(known)}"
        raise UserError(f"no query {args.query!r} to compare; {did_you_mean(args.query, known, every)}")
    if args.after is not None and not before.keys() & after.keys():
        names = " and ".join(
            f"{', '.join(sorted(side)) or 'none'} in {name}"
            for side, name in ((before, args.before), (after, args.after))
        )
        raise UserError(f"no query ran long enough on both sides: {names}")
    advised = _advised(args, (before, after))
    found = document(compare(before, after, args.query), args.before, args.after, args.change_at, advised)
    if args.json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        sys.stdout.write(text(found, sys.stdout.isatty() and not os.environ.get("NO_COLOR")))
    verdicts = {query["verdict"] for query in found["queries"]}
    return 2 if verdicts <= {"cannot tell"} else int("worse" in verdicts)


def _advised(args: argparse.Namespace, samples: Sides) -> dict[str, Any]:
    from ledgerops.analysis.advice import advice, harms

    at = None if args.change_at is None else instant("--change-at", args.change_at)
    config = load()
    return advice(harms(args.before, at, config), harms(args.after or args.before, config=config), samples)


def _sides(before: str, after: str | None, change_at: str | None) -> Sides:
    from ledgerops.analysis.batch_samples import samples, split
    from ledgerops.analysis.inputs import open_source

    if after is not None:
        return samples(open_source(before).observations), samples(open_source(after).observations)
    at = instant("--change-at", change_at)
    assert at is not None
    found = samples(open_source(before).observations)
    first = min((each[0].started for each in found.values()), default=at)
    last = max((each[-1].ended for each in found.values()), default=at)
    if found and not first < at < last:
        raise UserError(
            f"--change-at {change_at}: not between the first batch ({format_instant(first)}) "
            f"and the last ({format_instant(last)}) of {before}"
        )
    return split(found, at)
