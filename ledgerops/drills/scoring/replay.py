"""Replays a bundle: a verdict after each observation and each second in between, as for a user who keeps asking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.model import recording
from ledgerops.model.finding import Verdict
from ledgerops.model.records import ObservationKind
from ledgerops.runtime.replay import verdicts

GRID_SECONDS = 1.0  # between two verdicts while nothing is observed


def replayed(bundle: Bundle, without: Sequence[ObservationKind] = ()) -> Iterator[Verdict]:
    """Every verdict in order, made without the records of some kinds."""
    seen = (observation for observation in recording.read(bundle.recording) if observation.kind not in without)
    return verdicts(seen, every=GRID_SECONDS)
