"""Shows what a query keeps in its state, running or stopped, from its checkpoint alone.

For a checkpoint folder: operators, stores, columns, rows and bytes per partition, the keys with the most state, and
growth over the batches that the checkpoint retains. For the folder of a run: a table of all its jobs, without starting
Spark. Never writes to the checkpoint. Keys and strings are shown as hashes unless --show-keys is given.

Exit code: 0 the state was shown, or the query has none; 2 could not read the checkpoint.

Examples:
    ledgerops state runs/default
    ledgerops state runs/default/checkpoints/daily_counts
    ledgerops state runs/default/checkpoints/debit_credit_pairs --store left --since 40 --rows 3
    ledgerops state /data/checkpoints/my_query --operator 1 --key account_id --json
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerops.cli.arg_types import cores, count, shared_folder
from ledgerops.common.format import clean
from ledgerops.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIN_SPARK_VERSION = 4  # Spark's first version with the readers of state


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    place = "checkpoint folder, or folder of a run; an object store must be mounted"
    add("checkpoint", type=shared_folder, metavar="CHECKPOINT", help=place)
    add("--operator", type=count, metavar="N", help="only this operator")
    add("--store", metavar="NAME", help="only this store: a side of a join (left, right) or a state variable")
    add("--batch", type=count, metavar="N", help="state at the end of this batch (default: the newest)")
    add("--since", type=count, metavar="N", help="show growth since this batch (default: the oldest retained)")
    add("--top", type=count, default=5, metavar="K", help="number of keys with the most state to show (default 5)")
    add("--key", metavar="COLUMN", help="key column to rank by (default: all except timestamps)")
    add("--rows", type=count, default=0, metavar="N", help="sample rows to show per store (default 0)")
    add("--show-keys", action="store_true", help="show keys and strings in full instead of hashes")
    add("--json", action="store_true", help="print one JSON document and nothing else")
    add("--cores", type=cores, default=2, help="cores for reading (default 2)")
    add("--master", help="read on this Spark master; its workers must see the checkpoint under the same path")


def run(args: argparse.Namespace) -> int:
    from ledgerops.checkpoint.batch_log import is_checkpoint
    from ledgerops.checkpoint.listing import checkpoints_in, head, listing
    from ledgerops.checkpoint.reader import open_checkpoint

    path = args.checkpoint.absolute()
    if not is_checkpoint(path) and path.is_dir() and (found := checkpoints_in(path)):
        _print(listing(path, found), args.json, listed=True)
        return 0
    _check_folder(path)
    checkpoint = open_checkpoint(path)
    if not checkpoint.operators:
        if args.json:
            _print(head(checkpoint), as_json=True)
        else:
            print(f"{clean(str(path))}: the query has no state")
        return 0
    _print(_read(path, args), args.json)
    return 0


def _check_folder(path: Path) -> None:
    """Raises UserError for the folder of a run without a checkpoint, and for one with several runs."""
    from ledgerops.checkpoint.listing import checkpoints_in

    if (path / "run.json").is_file():
        raise UserError(f"no job of the run in {path} has begun a batch: there is no state to read yet")
    runs = [
        entry.name for entry in sorted(path.glob("*")) if (entry / "checkpoints").is_dir() and checkpoints_in(entry)
    ]
    if runs:
        raise UserError(f"{path} contains several runs; give one of them: {', '.join(runs)}")


def _read(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    from ledgerops.checkpoint.reader import open_checkpoint
    from ledgerops.checkpoint.summary import Selection, choose, summarize

    wanted = Selection(
        args.operator, args.store, args.batch, args.since, args.top, args.key, args.rows, show_keys=args.show_keys
    )
    choose(open_checkpoint(path), wanted)  # what can be refused is refused before Spark starts
    with _session(args) as session:
        return summarize(path, wanted, session)


@contextmanager
def _session(args: argparse.Namespace) -> Iterator[SparkSession]:
    """The active session, else a temporary one whose log is hidden."""
    _check_version()
    from pyspark.sql import SparkSession

    from ledgerops.ledger.run.spark_session import open_session, output_to, quick_start_conf

    at_work = SparkSession.getActiveSession()
    if at_work is not None:
        yield at_work
        return
    print("starting Spark to read the state ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="ledgerops-state-") as folder:
        extra = {"spark.ui.enabled": "false", "spark.local.dir": folder, **quick_start_conf()}
        with output_to(Path(folder) / "spark.log"):
            session = open_session(args.master, args.cores, Path(folder), extra)
        try:
            yield session
        finally:
            session.stop()


def _check_version() -> None:
    import pyspark

    found = pyspark.__version__  # also of one that pip did not install, as that of SPARK_HOME
    if int(found.split(".", 1)[0]) < MIN_SPARK_VERSION:
        raise UserError(f"reading state needs pyspark {MIN_SPARK_VERSION}.0 or later, this is {found}")


def _print(document: dict[str, Any], as_json: bool, listed: bool = False) -> None:
    if as_json:
        print(json.dumps(document))
        return
    from rich.console import Console

    from ledgerops.checkpoint.text_view import ListingText, StateText

    plain = not sys.stdout.isatty()
    # without a terminal there is no width to keep to but what a reader of text expects
    columns = os.environ.get("COLUMNS", "")
    width = None if not plain else int(columns) if re.fullmatch("[1-9][0-9]{0,5}", columns) else 120
    console = Console(width=width, no_color=plain or bool(os.environ.get("NO_COLOR")), highlight=False)
    console.print(ListingText(document) if listed else StateText(document))
