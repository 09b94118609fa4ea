"""The numbers of a finding, computed a second time from the recording alone, by the formulas that the runbooks state.

A diagnosis may be wrong in two ways: it blames the wrong thing, or its numbers are not there. Drills find the first;
this finds the second. Nothing here is shared with what is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.evidence.recompute import (
    causes,
    creep,
    event_time,
    inputs,
    ledger,
    machines,
    overrun,
    profile,
    sources,
    state,
    symptoms,
)
from tests.evidence.recompute.shared import Formula
from tests.evidence.tape import SAME, Json, Tape, instant

TOLERANCE = 0.01
TINY = 0.002  # seconds or shares: Spark's times are whole milliseconds, and a share is the quotient of two
FORMULAS: Mapping[str, Formula] = {
    **symptoms.FORMULAS,
    **inputs.FORMULAS,
    **creep.FORMULAS,
    **event_time.FORMULAS,
    **overrun.FORMULAS,
    **profile.FORMULAS,
    **causes.FORMULAS,
    **sources.FORMULAS,
    **machines.FORMULAS,
    **state.FORMULAS,
    **ledger.FORMULAS,
}


class Compared(NamedTuple):
    """One number: what the finding tells and what the recording gives; None where there is no formula, or no data."""

    name: str
    told: float
    found: float | None

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
    tape = Tape(lines, query, now)
    numbers = [(evidence["name"], evidence["value"]) for evidence in finding["evidence"]]
    if finding.get("saving_seconds") is not None:
        numbers.append(("saving_seconds", finding["saving_seconds"]))
    for name, told in numbers:
        compared = Compared(name, told, _value(tape, name, finding))
        if not compared.agrees:
            known = [line for line in lines if line.get("query") in (query, None) or instant(line["at"]) < now - SAME]
            before = Compared(name, told, _value(Tape(known, query, now), name, finding))
            compared = before if before.agrees else compared
        yield compared


def _value(tape: Tape, name: str, finding: Json) -> float | None:
    formula = FORMULAS.get(f"{finding['rule']}: {name}") or FORMULAS.get(name)
    try:
        return formula(tape, finding) if formula is not None else None
    except (KeyError, IndexError, ValueError, ZeroDivisionError, StopIteration):
        return None  # the recording lacks what the formula needs
