"""Downloads the jars for Kafka, Postgres and Delta: Spark's connectors, the Postgres driver and a Kafka broker.

Downloads once, with the Ivy that comes with pyspark, and checks every jar against its known hash. Later runs only check
them and work offline. The jars are kept in $LEDGEROPS_JARS, or in the user's cache folder.

Exit code: 0 all jars are present and correct, 2 they could not be downloaded.

Examples:
    ledgerops jars
    ledgerops jars --settings ivysettings.xml
    spark-submit --jars "$(ledgerops jars --path connector)" app.py
"""

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
        choices=("connector", "delta", "broker"),
        help="print the paths of these jars: comma-separated for spark.jars, or the broker's as a class path",
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", default=os.environ.get(SETTINGS),
        help=f"an ivysettings.xml, for repositories behind a mirror (default ${SETTINGS})")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from ledgerops.servers import jars

    began = time.monotonic()
    with _progress(len(jars.hashes())) as say:
        fetched = jars.fetch(Path(args.settings) if args.settings else None, say)
    if args.path == "connector":
        print(",".join(map(str, jars.connector_jars())))
    elif args.path == "delta":
        print(",".join(map(str, jars.delta_jars())))
    elif args.path == "broker":
        print(":".join(map(str, jars.broker_jars())))
    else:
        what = (
            f"downloaded in {time.monotonic() - began:.0f} s, hashes checked"
            if fetched.fresh
            else "already present, hashes checked"
        )
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
                print(
                    line if line.startswith("waiting") else f"downloading {total} jars ...", file=sys.stderr, flush=True
                )
            began = True

        yield tell
        return
    columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        finding = bar.add_task("resolving", total=total, visible=False)
        loading = bar.add_task("downloading", total=total, visible=False)

        def show(line: str) -> None:
            if line.startswith("waiting"):
                console.print(line)
            elif line.startswith("found "):
                bar.update(finding, advance=1, visible=True)
            elif line.startswith("[SUCCESSFUL"):
                bar.update(loading, advance=1, visible=True)

        yield show
