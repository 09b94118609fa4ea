"""Fetches the jars of Kafka and Postgres: Spark's connector, the driver, and a broker for tests and trials.

It does so once, through the Ivy that comes with pyspark; every jar is compared with its known hash. Afterwards it works
offline and only checks them. They are kept in $LEDGEROPS_JARS, else in the user's cache folder.

Exit code: 0 when they are there and right, 2 when they could not be fetched.

Examples:
    ledgerops jars
    ledgerops jars --settings ivysettings.xml
    spark-submit --jars "$(ledgerops jars --path connector)" app.py
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SETTINGS = "LEDGEROPS_IVY_SETTINGS"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--path",
        choices=("connector", "broker"),
        help="print only these jars: with commas for spark.jars, or the broker's as a class path",
    )
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        default=os.environ.get(SETTINGS),
        help=f"an ivysettings.xml, where repositories are reached through a mirror (default ${SETTINGS})",
    )


def run(args: argparse.Namespace) -> int:
    from ledgerops.servers import jars

    began = time.monotonic()
    with _progress(len(jars.hashes())) as say:
        fetched = jars.fetch(Path(args.settings) if args.settings else None, say)
    if args.path == "connector":
        print(",".join(map(str, jars.connector_jars())))
    elif args.path == "broker":
        print(":".join(map(str, jars.broker_jars())))
    else:
        what = f"fetched in {time.monotonic() - began:.0f} s and checked" if fetched.fresh else "there already, checked"
        print(f"{fetched.count} jars in {fetched.folder}: {what}")
    return 0


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Takes Ivy's lines: a bar on a terminal's stderr, else one line at the first of them."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        began = False

        def tell(line: str) -> None:
            nonlocal began
            if not began or line.startswith("waiting"):
                print(line if line.startswith("waiting") else f"fetching {total} jars ...", file=sys.stderr, flush=True)
            began = True

        yield tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        finding = bar.add_task("finding", total=total, visible=False)
        loading = bar.add_task("fetching", total=total, visible=False)

        def show(line: str) -> None:
            if line.startswith("waiting"):
                console.print(line)
            elif line.startswith("found "):
                bar.update(finding, advance=1, visible=True)
            elif line.startswith("[SUCCESSFUL"):
                bar.update(loading, advance=1, visible=True)

        yield show
