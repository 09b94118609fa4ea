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
        fresh = jars.fetch(Path(args.settings) if args.settings else None, say)
    if args.path == "connector":
        print(",".join(map(str, jars.connector_jars())))
    elif args.path == "delta":
        print(",".join(map(str, jars.delta_jars())))
    elif args.path == "broker":
        print(":".join(map(str, jars.broker_jars())))
    else:
        what = (
            f"downloaded in {time.monotonic() - began:.0f} s, hashes checked"
            if fresh
            else "already present, hashes checked"
        )
        print(f"{len(jars.hashes())} jars in {jars.jars_folder()}: {what}")
    return 0


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Takes Ivy's lines: a bar on a terminal's stderr, else one line at the first of them."""
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn

    from ledgerops.cli.progress import bar

    with bar(MofNCompleteColumn(), TimeElapsedColumn()) as shown:
        tasks = {
            start: shown.add_task(text, total=total, visible=False)
            for start, text in (("found ", "resolving"), ("[SUCCESSFUL", "downloading"))
        }
        began = False

        def show(line: str) -> None:
            nonlocal began
            if line.startswith("waiting"):
                shown.console.print(line, markup=False, highlight=False)
            elif shown.disable and not began:
                shown.console.print(f"downloading {total} jars ...", highlight=False)
            began = True
            for start, task in tasks.items():
                if line.startswith(start):
                    shown.update(task, advance=1, visible=True)

        yield show
