"""What somebody would be told who asks again and again: a verdict after each observation and each second in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.model import recording
from ledgerops.model.finding import Verdict
from ledgerops.model.records import Kind
from ledgerops.runtime.replay import verdicts

GRID = 1.0  # seconds between two looks when nothing is heard


def looks(bundle: Bundle, without: Sequence[Kind] = ()) -> Iterator[Verdict]:
    """Every verdict in order, as without the records of some kinds."""
    seen = (each for each in recording.read(bundle.recording) if each.kind not in without)
    return verdicts(seen, every=GRID)
