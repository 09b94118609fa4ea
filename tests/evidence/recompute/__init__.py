"""The numbers of a finding, computed a second time from the recording alone.

A diagnosis may be wrong in two ways: it blames the wrong thing, or its numbers are not there. Drills find the first;
this finds the second. Nothing here is shared with what is checked. Which batches a rule compares is its own choice: a
formula may give a number for each choice, and then the finding must tell one of them. A formula has what the recordings
need to agree: one that a new recording contradicts is to be completed, where the rule is right.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.evidence.recompute import around, batches, profile
from tests.evidence.tape import SAME, Formula, Json, Tape, instant

TOLERANCE = 0.01
TINY = 0.002  # seconds or shares: Spark's times are whole milliseconds, and a share is the quotient of two
FORMULAS: Mapping[str, Formula] = {**batches.FORMULAS, **around.FORMULAS, **profile.FORMULAS}


class Compared(NamedTuple):
    """One number: what the finding tells and what the recording gives; nothing without a formula, or without data."""

    name: str
    told: float
    given: Sequence[float]

    @property
    def found(self) -> float | None:
        return min(self.given, key=lambda each: abs(each - self.told), default=None)

    @property
    def agrees(self) -> bool:
        if self.found is None:
            return False
        return abs(self.told - self.found) <= max(TINY, TOLERANCE * max(abs(self.told), abs(self.found)))


def recompute(lines: Sequence[Json], query: str, now: float, finding: Json) -> Iterator[Compared]:
    """Every number of a finding (as in the diagnosis document) that was made at `now`.

    One look at all queries leaves lines of one instant, and a verdict comes after each: it knew of the others' lines
    of its own instant, or did not yet.
    """
    known = [each for each in lines if each.get("query") in (query, None) or instant(each["at"]) < now - SAME]
    tape, before = Tape(lines, query, now, finding), Tape(known, query, now, finding)
    numbers = [(evidence["name"], evidence["value"]) for evidence in finding["evidence"]]
    if finding.get("saving_seconds") is not None:
        numbers.append(("saving_seconds", finding["saving_seconds"]))
    for name, told in numbers:
        compared = Compared(name, told, _given(tape, name))
        earlier = compared if compared.agrees else Compared(name, told, _given(before, name))
        yield earlier if earlier.agrees else compared


def _given(tape: Tape, name: str) -> list[float]:
    formula = FORMULAS.get(f"{tape.finding['rule']}: {name}") or FORMULAS.get(name)
    try:
        given = formula(tape) if formula is not None else None
        return [] if given is None else list(given) if isinstance(given, Iterable) else [given]
    except (KeyError, IndexError, ValueError, ZeroDivisionError, StopIteration):
        return []  # the recording lacks what the formula needs
