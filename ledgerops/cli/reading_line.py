"""A line on a terminal that tells how far the reading of a long recording or event log is; it goes at the end."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from ledgerops.cli.live_redraw import ERASE_LINE
from ledgerops.model.records import Observation
from ledgerops.model.spark_progress import format_instant

FIRST_SECONDS = 1.0  # of reading without a line: most recordings take less
EVERY_SECONDS = 0.5  # between two lines


def followed(
    observations: Iterable[Observation], out: TextIO, clock: Callable[[], float] = time.monotonic
) -> Iterator[Observation]:
    """The same observations; nothing is written when `out` is no terminal. `clock` gives seconds."""
    began = clock()
    due = began + FIRST_SECONDS if out.isatty() else float("inf")
    shown = False
    try:
        for count, seen in enumerate(observations, 1):
            yield seen
            if (now := clock()) >= due:
                shown, due = True, now + EVERY_SECONDS
                at = format_instant(seen.at)[:19].replace("T", " ")
                out.write(f"\rreading for {now - began:.0f} s: {count:,} records, until {at} UTC{ERASE_LINE}")
                out.flush()
    finally:  # an error message begins at the beginning of the line, as does the report
        if shown:
            out.write(f"\r{ERASE_LINE}")
            out.flush()
