"""What `load test` and `load search` share: their options, the progress of a trial, and the files of results."""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerops.cli.arg_types import cores, seconds
from ledgerops.common.format import clock
from ledgerops.config import FRESHNESS_OBJECTIVE_SECONDS
from ledgerops.errors import UserError, writing_to

if TYPE_CHECKING:
    from ledgerops.load.test.search import Rate
    from ledgerops.load.test.slo import Slo

TRIGGER_SECONDS = 2.0
CORES = 2
MIN_BATCHES = 6  # of a measured part, at its trigger interval


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--slo",
        action="append",
        metavar="OBJECTIVE",
        help="objective, such as 'p99 latency < 5s', 'batch < trigger' or 'state < 200MB'; repeatable "
        "(default: lag slope <= 1%%, p99 latency under the freshness objective, batch < trigger, state growth < 10%%)",
    )
    add("--freshness", type=seconds, default=FRESHNESS_OBJECTIVE_SECONDS, metavar="TIME",
        help="freshness objective: maximum age of results, for the default objectives "
        f"(default {FRESHNESS_OBJECTIVE_SECONDS:.0f}s)")  # fmt: skip
    add("--trigger", type=seconds, default=TRIGGER_SECONDS, metavar="TIME",
        help=f"trigger interval (default {TRIGGER_SECONDS:g}s)")  # fmt: skip
    add("--cores", type=cores, default=CORES,
        help=f"cores for Spark, and number of shuffle partitions (default {CORES})")  # fmt: skip
    add("--out", type=Path, default=Path("runs"), metavar="FOLDER", help="folder for results (default runs)")
    add("--json", action="store_true", help="print one JSON document and nothing else")


def objectives(args: argparse.Namespace) -> list[Slo]:
    """The objectives of --slo, else the defaults. Raises UserError."""
    from ledgerops.load.test.slo import default_slos, parse

    return [parse(text) for text in args.slo] if args.slo else default_slos(args.freshness)


def check_length(option: str, length: float, trigger: float) -> None:
    """Raises UserError for a measured part (seconds) that is too short for enough batches; `option` is its option."""
    least = MIN_BATCHES * trigger
    if length < least:
        raise UserError(
            f"{option} {length:g}s is too short for {MIN_BATCHES} batches at a trigger interval of {trigger:g} s; "
            f"give at least {least:g}s"
        )


def write_results(folder: Path, name: str, document: Any, page: str, table: Iterable[Sequence[Any]] = ()) -> None:
    """Writes name.json, name.html and, of a table (its head first), name.csv. Raises UserError."""
    with writing_to(folder):
        (folder / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        (folder / f"{name}.html").write_text(page, "utf-8")
        if table:
            with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(table)


class TrialProgress(AbstractContextManager["TrialProgress"]):
    """Trials as they run, on stderr: a bar on a terminal, else a line for each thing that begins."""

    def __init__(self) -> None:
        from rich.progress import TimeElapsedColumn

        from ledgerops.cli.progress import bar

        self.bar = bar(TimeElapsedColumn())
        self.console = self.bar.console
        self.task: Any = None
        self.what = self.doing = ""
        self.began = time.monotonic()

    def __enter__(self) -> TrialProgress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def begin(self, trial: int, of: int, what: str) -> None:
        """A trial begins, the `trial`-th of about `of`; `what` is its line or the text of its bar."""
        passed = clock(time.monotonic() - self.began)
        self.what, self.doing = f"trial {trial} of about {of}: {what}" if of > 1 else what, ""
        if self.bar.disable:
            self.console.print(f"{passed}  {self.what}", highlight=False)
            return
        if self.task is not None:
            self.bar.remove_task(self.task)
        self.task = self.bar.add_task(self.what, total=1.0)

    def say(self, what: str, share: float) -> None:
        """The trial is at the step `what`, with `share` (0 to 1) of it done."""
        if self.task is not None:
            self.bar.update(self.task, description=f"{self.what}: {what}", completed=share)
        elif what != self.doing:
            print(f"      {what} ...", file=sys.stderr, flush=True)
        self.doing = what

    def end(self, rate: Rate) -> None:
        """After a trial of a search: what became of the rate."""
        from ledgerops.load.test.slo import broken

        why = broken(rate.judged[-1])
        outcome = f"failed: {why[0]}" if why else "held"
        self.console.print(
            f"{clock(time.monotonic() - self.began)}  {rate.rate:,.0f} rows/s {outcome}", markup=False, highlight=False
        )
