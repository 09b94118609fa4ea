"""What a check found, for the table and for JSON."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ledgerops.common.format import UNKNOWN
from ledgerops.ledger.plan.summary import money

Verdict = Literal["holds", "broken", "not checked", "nothing to verify"]
MAX_EXAMPLES = 5
HEADINGS = ("job", "rows", "lost", "repeated", "changed", "money", "verdict")


@dataclass
class JobCheck:
    """The result for one job, its fields as in JSON. None: not checked, or unknown."""

    job: str
    verdict: Verdict
    rows: int | None = None
    lost: int | None = None
    repeated: int | None = None
    changed: int | None = None
    money: str | None = None  # "equal", or by how much it differs
    notes: list[str] = field(default_factory=list)
    examples: dict[str, Sequence[str]] = field(default_factory=dict)  # of lost, repeated and changed: at most five each


def judge(result: JobCheck, lenient: bool) -> JobCheck:
    """Sets the verdict by the counts, and drops examples of nothing.

    With `lenient` repeats are what the sink may do, and are only noted.
    """
    repeated = result.repeated or 0
    if lenient and repeated:
        result.notes.append(f"{repeated:,} repeated (allowed by the sink: at least once)")
        repeated = 0
    result.examples = {what: examples for what, examples in result.examples.items() if examples}
    fine: Verdict = "nothing to verify" if result.rows == 0 else "holds"
    result.verdict = "broken" if result.lost or repeated or result.changed else fine
    return result


def apart(name: str, cents: int) -> str:
    """By how much a sum of money is more or less than it should be: amount -12.30; empty where it is right."""
    return f"{name} {'+' if cents > 0 else ''}{money(cents)}" if cents else ""


def lines(results: Iterable[JobCheck]) -> Iterator[str]:
    """One line for each job, with its notes and examples below."""
    results = list(results)
    table = [HEADINGS, *(_cells(result) for result in results)]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADINGS))]
    yield _row(HEADINGS, widths)
    for result, cells in zip(results, table[1:], strict=True):
        yield _row(cells, widths)
        for note in result.notes:
            yield f"    {note}"
        for what, examples in result.examples.items():
            yield f"    {what}: {', '.join(examples)}"


def _cells(result: JobCheck) -> tuple[str, ...]:
    counts = (result.rows, result.lost, result.repeated, result.changed)
    return (
        result.job,
        *(UNKNOWN if count is None else f"{count:,}" for count in counts),
        result.money or UNKNOWN,
        result.verdict,
    )


def _row(cells: tuple[str, ...], widths: list[int]) -> str:
    # names to the left, counts to the right
    padded = [
        cell.rjust(width) if 0 < column < 5 else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
