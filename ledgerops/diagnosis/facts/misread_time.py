"""Event times that no producer means: a number of another unit, or a missing one, that was read as a time."""

from datetime import UTC, datetime
from typing import NamedTuple

from ledgerops.model.spark_progress import year_of

# times the clock: a factor of a unit is taken for the reason of an event time that is then between 1988 and 2055
MIN_CLOCK_SHARE, MAX_CLOCK_SHARE = 0.3, 1.5
TOO_LARGE = ((1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds"))  # read as seconds
TOO_SMALL = ((1e3, "seconds read as milliseconds"), (1e6, "seconds read as microseconds"))
EPOCH_SECONDS = 1.0  # from 1970 on: a missing number is read as 0


class Misread(NamedTuple):
    """An event time, in seconds since the epoch, and what it probably is instead."""

    at: float
    words: str  # such as `milliseconds read as seconds`
    ahead: bool  # of the clock

    @property
    def question(self) -> str:
        """Such as `in the year 58865: milliseconds read as seconds?`."""
        when = f"in the year {year_of(self.at)}" if self.ahead else f"{datetime.fromtimestamp(self.at, UTC):%Y-%m-%d}"
        return f"{when}: {self.words}?"


def misread(at: float | None, clock: float) -> Misread | None:
    """What is wrong with an event time, at an instant of the clock; None where it can be a time."""
    if at is None or clock <= 0:
        return None
    if 0 <= at < EPOCH_SECONDS:
        return Misread(at, "a missing time read as 0", ahead=False)
    for factor, unit in TOO_LARGE:
        if MIN_CLOCK_SHARE <= at / factor / clock <= MAX_CLOCK_SHARE:
            return Misread(at, f"{unit} read as seconds", ahead=True)
    for factor, words in TOO_SMALL:
        if MIN_CLOCK_SHARE <= at * factor / clock <= MAX_CLOCK_SHARE:
            return Misread(at, words, ahead=False)
    return None
