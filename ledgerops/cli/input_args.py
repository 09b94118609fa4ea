"""The place that is looked at, the query and the moment: arguments of every command that reads what was observed."""

from __future__ import annotations

import argparse

from ledgerops.errors import UserError

EXPORTER = "http://127.0.0.1:9464"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--from",
        dest="place",
        metavar="PATH|URL",
        default=EXPORTER,
        help=f"a recording, a folder of recordings, a Spark event log, or an exporter's URL (default {EXPORTER})",
    )
    add("--query", metavar="NAME", help="only this query")
    add("--at", metavar="TIME", help="diagnose this moment: ISO 8601, UTC if no time zone is given")


def instant(option: str, text: str | None) -> float | None:
    """The moment that an option names, None without one. Raises UserError."""
    from ledgerops.model.spark_progress import parse_instant

    moment = None if text is None else parse_instant(text)
    if text is not None and moment is None:
        raise UserError(f"{option} {text}: not a time; write it like 2026-11-21T08:30:00Z")
    return moment
