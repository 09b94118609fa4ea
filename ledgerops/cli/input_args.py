"""The source, the query and the moment: arguments of every command that reads what was observed."""

import argparse
import re
from pathlib import Path

from ledgerops.config import load
from ledgerops.errors import UserError

SOURCES = "a recording, a folder of recordings, a Spark event log, or an exporter's URL or HOST:PORT"


def add_source(parser: argparse.ArgumentParser, what: str = SOURCES) -> None:
    """The argument SOURCE, and its two older spellings."""
    default = "(default: the exporter of this machine, by the settings host and port)"
    parser.add_argument("source", nargs="?", metavar="SOURCE", help=f"{what} {default}")
    parser.add_argument("--from", "--url", dest="place", metavar="SOURCE", help="another way to give SOURCE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add = parser.add_argument
    add("--query", metavar="NAME", help="only this query")
    add("--at", metavar="TIME", help="moment to examine: ISO 8601, UTC if no time zone is given")


HOST_PORT = re.compile(r"[\w.-]+:\d+")


def place(args: argparse.Namespace) -> str:
    """The source that was given, or the exporter that the settings name. HOST:PORT, as an alert names a driver, is the
    address of an exporter. Raises UserError for two sources."""
    if args.source and args.place:
        raise UserError(f"two sources: {args.source} and {args.place}; give one")
    given: str = args.source or args.place or load().url
    return f"http://{given}" if HOST_PORT.fullmatch(given) and not Path(given).exists() else given


def instant(option: str, text: str | None) -> float | None:
    """The moment that an option names, None without one. Raises UserError."""
    from ledgerops.model.spark_progress import parse_instant

    moment = None if text is None else parse_instant(text)
    if text is not None and moment is None:
        raise UserError(f"{option} {text}: not a time; write it like 2026-11-21T08:30:00Z")
    return moment
