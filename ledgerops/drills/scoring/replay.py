"""Replays a bundle: a verdict after each observation and each second in between, as for a user who keeps asking."""

from __future__ import annotations

from collections.abc import Iterator

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.model import recording
from ledgerops.model.finding import Verdict
from ledgerops.runtime.replay import verdicts

GRID_SECONDS = 1.0  # between two verdicts while nothing is observed


def replayed(bundle: Bundle) -> Iterator[Verdict]:
    """Every verdict in order."""
    return verdicts(recording.read(bundle.recording), every=GRID_SECONDS)
