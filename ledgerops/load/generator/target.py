"""What a sender needs to know of where records go, and which of them are its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ledgerops.load.generator.records import Records


class Target(Protocol):
    """Where records go."""

    kinds: Sequence[str]  # of poison that it can hold
    acknowledged: int  # records that it has confirmed
    refused: int  # records that it has rejected for good
    problem: str | None  # why the first record was refused

    def send(self, records: Records, start: int, end: int) -> int:
        """Takes the records at places [start, end) as far as it can just now; returns the first place not taken."""

    def serve(self) -> None:
        """Handles the acknowledgements that have arrived. Does not wait."""

    def close(self) -> None:
        """Waits until every record is acknowledged or refused, or sets `problem`."""

    @property
    def waiting(self) -> int:
        """Number of records neither acknowledged nor refused yet; 0 when `close` would not wait."""


@dataclass(frozen=True)
class Share:
    """Every `count`-th record of the stream, from record `number` on: what one of `count` senders sends."""

    number: int = 0
    count: int = 1


ALL = Share()
