"""Estimates the rate that a query can sustain, what limits it, and how another load, trigger interval or number of
cores would change that.

Fits batch time against rows per batch with a line that is robust to outliers, and gives a 90 % confidence interval
(bootstrap). Answers "cannot tell", with the reason, where the data do not support an estimate: all batches have the
same size, or the load is far above anything observed. Reads the same sources as `ledgerops diagnose`.

Exit code: 0 estimated, 2 could not read the source.

Examples:
    ledgerops capacity
    ledgerops capacity run/recording --query daily_counts --load 2x --load 5000
    ledgerops capacity --trigger 5s --cores 8
    ledgerops capacity run/recording --at 2026-11-21T08:30:00Z --json | python -m json.tool
"""

import argparse
import json
import re
import sys

from ledgerops.cli import input_args
from ledgerops.cli.arg_types import cores, seconds
from ledgerops.config import load as settings

MAX_FACTOR, MAX_ROWS_PER_SECOND = 1_000, 1_000_000_000


def load(text: str) -> dict[str, float]:
    """The type of --load: 2x (`load` of a question), or 5000 for rows a second (`rows`). Raises ArgumentTypeError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(x?)", text.strip())
    if not found or float(found[1]) <= 0:
        raise argparse.ArgumentTypeError(f"not a load: {text!r}; write 2x, or rows a second such as 5000")
    if float(found[1]) > (MAX_FACTOR if found[2] else MAX_ROWS_PER_SECOND):
        raise argparse.ArgumentTypeError(
            f"{text} is out of range: at most {MAX_FACTOR:,}x or {MAX_ROWS_PER_SECOND:,} rows a second"
        )
    return {"load" if found[2] else "rows": float(found[1])}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    input_args.add_arguments(parser)
    add("--load", type=load, action="append", default=[], metavar="2x|ROWS",
        help="estimate for this load: a factor, or rows a second; repeatable")  # fmt: skip
    add("--trigger", type=seconds, action="append", default=[], metavar="TIME",
        help="estimate for this trigger interval; repeatable")  # fmt: skip
    add("--cores", type=cores, action="append", default=[], metavar="N",
        help="estimate for this number of cores; repeatable")  # fmt: skip
    add(
        "--freshness",
        type=seconds,
        metavar="TIME",
        help="freshness objective: maximum age of results (default: the setting freshness_objective_seconds)",
    )
    add("--json", action="store_true", help="print one JSON document and nothing else")


def run(args: argparse.Namespace) -> int:
    from ledgerops.analysis.capacity.answer import Question, answer
    from ledgerops.analysis.capacity.inputs import read_views
    from ledgerops.analysis.capacity.report import document, text
    from ledgerops.analysis.capacity.situation import situation

    views, at, name = read_views(
        input_args.place(args),
        args.query,
        input_args.instant("--at", args.at),
        args.freshness,
        f" before {args.at}" if args.at else "",
        settings(),
    )
    asked = [
        *(Question(**each) for each in args.load),
        *(Question(trigger=each) for each in args.trigger),
        *(Question(cores=each) for each in args.cores),
    ]
    if sum(map(bool, (args.load, args.trigger, args.cores))) > 1:
        firsts = {name: next(iter(getattr(args, name)), None) for name in ("trigger", "cores")}
        asked.append(Question(**next(iter(args.load), {}), **firsts))
    answered = [
        (known, [answer(known, question) for question in (Question(), *asked)]) for known in map(situation, views)
    ]
    if args.json:
        print(json.dumps(document(answered, at, name)))
    else:
        sys.stdout.write(text(answered, at))
    return 0
