"""How far a time that should move on has moved in a run, and since when it stands: in constant space, however long."""

from typing import NamedTuple


class Advance(NamedTuple):
    """The highest value of a time so far, with the batches in which it rose. Everything in seconds since the epoch."""

    value: float
    moved_at: float  # start of the batch in which it last rose
    first: float  # its first value
    began: float  # start of the batch with that
    moves: int = 0  # how often it rose
    longest: float = 0.0  # seconds between two rises

    @property
    def pace(self) -> float | None:
        """Seconds that it rose for each second of the clock, until it last did; None before it did."""
        elapsed = self.moved_at - self.began
        return (self.value - self.first) / elapsed if elapsed > 0 else None


def advanced(known: Advance | None, value: float | None, at: float) -> Advance | None:
    """What is known of a time after the batch that began at `at`; None until it has a value. An absent or lower one
    leaves all as it is."""
    if known is None:
        return None if value is None else Advance(value, at, value, at)
    if value is None or value <= known.value:
        return known
    return Advance(value, at, known.first, known.began, known.moves + 1, max(known.longest, at - known.moved_at))
